package store

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A store of version 1 is read as what was appended to it, and a writer goes on in the same files.
func TestVersion1(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "version1"))); err != nil {
		t.Fatal(err)
	}
	rnd, want := rand.New(rand.NewPCG(31, 1)), map[string]total{}
	for i := range 3 {
		totals(made(rnd, noon.Add(time.Duration(i)*30*time.Second), 3+i, 60), want)
	}
	before, r := everything(t, dir)
	if d := r.Damage(); len(d) > 0 || !maps.Equal(totals(before, map[string]total{}), want) {
		t.Errorf("the store of version 1 has other samples than were appended; %q", d)
	}
	w := create(t, dir, Options{})
	for i := range 3 {
		at := noon.Add(time.Hour + time.Duration(i)*30*time.Second)
		p := made(rnd, at, 3+i, 60)
		totals(p, want)
		put(t, w, p, at)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if list, _, err := segments(dir, dayOf(noon)); err != nil || len(list) != 1 {
		t.Errorf("segments %v, %v: want one", list, err)
	}
	after, r := everything(t, dir)
	if d := r.Damage(); len(d) > 0 || !maps.Equal(totals(after, map[string]total{}), want) {
		t.Errorf("after more profiles they are not the sum of both; %q", d)
	}
}

// Names are stored without what is another one in each process, and come back as they are else.
func TestNamesThatLast(t *testing.T) {
	for name, want := range map[string]string{
		"chromium+0x56b885f":                           "chromium+0x56b885f",
		"[anon]+0x7fd27cc0e8d8":                        "[anon]",
		"memfd:x+0x7f40e4752ef4":                       "memfd:x",
		"a.B$$Lambda/0x0000000032042800.run":           "a.B$$Lambda.run",
		"F$$Lambda$7/0x80000000b.g$$Lambda/0x12345678": "F$$Lambda$7.g$$Lambda",
		"GET /0x12": "GET /0x12",
		"f+0xzz":    "f+0xzz",
		"+0x":       "+0x",
		"/0x":       "/0x",
		"":          "",
	} {
		if got := lasting(name); got != want {
			t.Errorf("%q is stored as %q, want %q", name, got, want)
		}
	}
	var f fresh
	index := map[string]uint32{}
	for _, s := range []string{"", "chromium", "chromium+0x0", "chromium+0x10", "chromium+0x010", "x+0x10", "chromium+0x7fffffffffffffff", "chromium+0xffffffffffffffff", "chromium+0xA", "chromium+0x5", "chromium+0x"} {
		index[s] = uint32(len(f.strings))
		f.strings = append(f.strings, s)
	}
	var g fresh
	if _, err := g.decodeNames(f.encodeNames(counts{}, index), nil); err != nil || len(g.strings) != len(f.strings) {
		t.Fatalf("%q, %v", g.strings, err)
	}
	for i, s := range f.strings {
		if g.strings[i] != s {
			t.Errorf("%q came back as %q", s, g.strings[i])
		}
	}
}
