package jfr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// small returns a recording of candid's with a little of everything.
func small(t testing.TB) []byte {
	t.Helper()
	p := *profiletest.Java()
	p.Samples = p.Samples[:60]
	var b bytes.Buffer
	if err := Write(&b, &p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// foreignFile returns a recording as other profilers write it, made of the same pieces: candid's
// own types have other names, so that their content is not recognized.
func foreignFile(t testing.TB) []byte {
	return bytes.ReplaceAll(small(t), []byte("candid.types."), []byte("unknown.type."))
}

// If candid's own parts are not recognized, what other readers see of its file is read.
func TestForeignStacks(t *testing.T) {
	p, err := parse(foreignFile(t))
	if err != nil {
		t.Fatal(err)
	}
	want := counts(part(profiletest.Java(), 60))
	got := counts(p)
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %d, want %d", name, got[name], n)
		}
	}
	if len(p.Samples) != 60 || p.Events[0] != (profile.Event{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1_000_000}) || p.Samples[59].Time == 0 {
		t.Errorf("%d samples of %v", len(p.Samples), p.Events)
	}
}

func TestCutAnywhere(t *testing.T) {
	data := small(t)
	step := 7 // has no factor in common with the lengths of fields
	if fixture.Full(t) {
		step = 1
	}
	for n := 0; n < len(data); n += step {
		if p, err := parse(data[:n]); err == nil && len(p.Samples) > 60 {
			t.Fatalf("%d bytes: %d samples", n, len(p.Samples))
		}
	}
	p, err := parse(append(bytes.Clone(data), "FLR\x00torn"...))
	if err != nil || len(p.Samples) != 60 || len(p.Meta.Notes) != 2 || !strings.Contains(p.Meta.Notes[1], "8 bytes") {
		t.Errorf("%v, %v", p, err)
	}
}

// Two recordings one after the other are one file, which the format allows.
func TestTwoFilesInOne(t *testing.T) {
	data := small(t)
	p, err := parse(append(bytes.Clone(data), data...))
	if err != nil || len(p.Samples) != 120 {
		t.Fatal(err)
	}
	for name, n := range counts(part(profiletest.Java(), 60)) {
		if got := counts(p)[name]; got[0] != 2*n[0] || got[1] != 2*n[1] {
			t.Errorf("%s: %d, want twice %d", name, got, n)
		}
	}
}

func TestRefusals(t *testing.T) {
	data := small(t)
	for name, c := range map[string]struct {
		at    int
		bytes string
		says  string
	}{
		"version":      {atVersion, "\x00\x01", "version 1.0"},
		"uncompressed": {atFlags + 3, "\x00", "not compressed"},
		"no size":      {atSize, strings.Repeat("\x00", 8), "cut off"},
		"no types":     {atMetadata, strings.Repeat("\xff", 8), "cut off"},
		"other place":  {atMetadata, "\x00\x00\x00\x00\x00\x00\x00\x45", ""},
		"loop":         {atCheckpoint, "\x00\x00\x00\x00\x00\x00\x00\x44", "no checkpoint"},
	} {
		bad := bytes.Clone(data)
		copy(bad[c.at:], c.bytes)
		if _, err := parse(bad); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parse([]byte("FLR\x00")); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
}

// An event may be as large as the format permits: one that is too large to be examined is skipped,
// and what follows it is read.
func TestLargeEvents(t *testing.T) {
	add := func(data []byte, text int) []byte {
		b := reserveSize(nil)
		b = append(b, typeNote)
		b = appendInt(appendLong(b, firstTick), 1)
		b = appendString(b, strings.Repeat("x", text))
		putSize(b, 0)
		data = append(data, b...)
		binary.BigEndian.PutUint64(data[atSize:], uint64(len(data)))
		return data
	}
	for _, c := range []struct{ large, want int }{{17 << 20, 17 << 20}, {maxOfInterest, 3}} {
		p, err := parse(add(add(small(t), c.large), 3))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Samples) != 60 || len(p.Meta.Notes) != 2 || len(p.Meta.Notes[1]) != c.want {
			t.Errorf("behind %d bytes: %d samples, %d notes", c.large, len(p.Samples), len(p.Meta.Notes))
		}
	}
	// An event that ends after the file.
	data := add(small(t), 3)
	copy(data[len(data)-9:], "\xff\xff\xff\x7f")
	if p, err := parse(data); err == nil && len(p.Samples) != 60 {
		t.Errorf("%d samples", len(p.Samples))
	}
}

// A type that contains itself, or contains twice one that contains another twice and so on, is
// refused before it is read.
func TestHostileTypes(t *testing.T) {
	s := &schema{byID: map[uint64]*class{}, byName: map[string]*class{}}
	s.byID[1] = &class{id: 1, name: "self", fields: []field{{name: "f", typ: 1}}}
	if _, err := s.planOf(s.byID[1]); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	s.byID[10] = &class{id: 10, name: "int"}
	for i := uint64(11); i < 60; i++ {
		s.byID[i] = &class{id: i, name: "t", fields: []field{{name: "a", typ: i - 1}, {name: "b", typ: i - 1}}}
	}
	if _, err := s.planOf(s.byID[59]); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
}

// Constants that refer to each other in circles are read once each: strings to strings, classes to
// their loaders and these to classes, methods to classes, and checkpoints to checkpoints.
func TestConstantsInCircles(t *testing.T) {
	const ids = 200 // more than small uses of each type
	type put = func(b []byte, id uint64) []byte
	next := func(b []byte, id uint64) []byte { return appendLong(b, id%ids+1) }
	symbols := func(b []byte, id uint64) []byte { return next(append(b, stringConstant), id) }
	circles := []struct {
		typ  uint64
		each put
	}{
		{typeString, symbols},
		{typeSymbol, symbols},
		{typeClassLoader, func(b []byte, id uint64) []byte { return next(next(b, id), id) }},                                // type, name
		{typeClass, func(b []byte, id uint64) []byte { return append(next(next(appendLong(b, id), id), id), 0) }},           // classLoader, name, package, modifiers
		{typeMethod, func(b []byte, id uint64) []byte { return append(appendLong(next(appendLong(b, id), id), id), 0, 0) }}, // type, name, descriptor, modifiers, hidden
		{typePackage, next},
		{typeFrameType, symbols},
		{typeThreadState, symbols},
	}
	for _, c := range []struct {
		name   string
		before func(old, at int) uint64 // the distance to the checkpoint before
		bad    bool
	}{
		{"checkpoints in order", func(old, at int) uint64 { return uint64(old - at) }, false},
		{"a checkpoint before itself", func(old, at int) uint64 { return ^uint64(0) }, true},
		{"a checkpoint behind itself", func(old, at int) uint64 { return 1 }, false},
		{"a checkpoint before the file", func(old, at int) uint64 { return 1 << 63 }, false},
	} {
		data := foreignFile(t)
		old, at := int(binary.BigEndian.Uint64(data[atCheckpoint:])), len(data)
		b := append(reserveSize(nil), typeCheckpoint, firstTick, 0)
		b = append(appendLong(b, c.before(old, at)), 0)
		b = appendInt(b, int32(len(circles)))
		for _, pool := range circles {
			b = appendInt(appendLong(b, pool.typ), ids)
			for id := range uint64(ids) {
				b = pool.each(appendLong(b, id+1), id+1)
			}
		}
		putSize(b, 0)
		data = append(data, b...)
		binary.BigEndian.PutUint64(data[atSize:], uint64(len(data)))
		binary.BigEndian.PutUint64(data[atCheckpoint:], uint64(at))
		p, err := parse(data)
		if c.bad {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || len(p.Samples) == 0 {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.name == "checkpoints in order" && len(p.Samples) != 60 {
			t.Errorf("%s: %d samples", c.name, len(p.Samples))
		}
	}
}

// Increasing numbers take no more memory than there are constants.
func TestTableOfWideNumbers(t *testing.T) {
	var tb table[[7]uint64]
	ids := []uint64{0, 1, 1 << 63}
	for i := range uint64(200) {
		n := uint64(len(tb.pages)) << tableBits
		ids = append(ids, n*4+4000+i, n)
		for _, id := range ids[len(ids)-2:] {
			tb.put(id, [7]uint64{id})
		}
	}
	places := 0
	for _, p := range tb.pages {
		if p != nil {
			places += len(p.list)
		}
	}
	if places > 4*len(ids)+1<<12 {
		t.Errorf("%d places for %d constants", places, len(ids))
	}
	for _, id := range ids[3:] {
		if v, ok := tb.get(id); !ok || v[0] != id {
			t.Errorf("%d: %v, %v", id, v, ok)
		}
	}
	if _, ok := tb.get(1 << 63); ok {
		t.Error("there is what was not put")
	}
	n := 0
	tb.each(func(uint64, [7]uint64) { n++ })
	if n == 0 || n > len(ids) {
		t.Errorf("%d constants", n)
	}
}

func TestStringsInEveryForm(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want text
	}{
		"null":     {"\x00", text{}},
		"empty":    {"\x01", text{}},
		"constant": {"\x02\x85\x01", text{ref: 133}},
		"utf8":     {"\x03\x03\xe2\x82\xac", text{s: "€"}},
		"chars":    {"\x04\x03\x61\xac\x41\x62", text{s: "a\u20acb"}},
		"latin1":   {"\x05\x02\xe4b", text{s: "äb"}},
	} {
		cur := &cursor{b: []byte(c.data)}
		if got := cur.text(); got != c.want || cur.err != nil || cur.left() != 0 {
			t.Errorf("%s: %+v, %v", name, got, cur.err)
		}
		cur = &cursor{b: []byte(c.data)}
		if cur.skipText(); cur.err != nil || cur.left() != 0 {
			t.Errorf("%s: %d bytes left, %v", name, cur.left(), cur.err)
		}
	}
	for _, bad := range []string{"", "\x06", "\x03\x02a", "\x04\xff\xff\xff\xff\x0f", "\x05"} {
		cur := &cursor{b: []byte(bad)}
		if cur.text(); cur.err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestIntegers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 10000 {
		v := r.Uint64() >> r.IntN(64)
		if i == 0 {
			v = 1<<64 - 1
		}
		b := appendLong(nil, v)
		cur := &cursor{b: b}
		if got := cur.long(); got != v || cur.left() != 0 || len(b) > maxLong {
			t.Fatalf("%d came back as %d of %d bytes", v, got, len(b))
		}
	}
}
