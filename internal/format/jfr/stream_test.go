package jfr

import (
	"bytes"
	"errors"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// file is an Output in memory.
type file struct {
	b     []byte
	limit int // bytes that it accepts; 0: any number
	saw   func(b []byte)
}

var errFull = errors.New("no space left")

func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	if f.limit > 0 && int(off)+len(p) > f.limit {
		p, err = p[:max(f.limit-int(off), 0)], errFull
	}
	if end := int(off) + len(p); end > len(f.b) {
		f.b = append(f.b, make([]byte, end-len(f.b))...)
	}
	n = copy(f.b[off:], p)
	if f.saw != nil {
		f.saw(f.b)
	}
	return n, err
}

func (f *file) Truncate(size int64) error {
	f.b = f.b[:size]
	return nil
}

func parse(b []byte) (*profile.Profile, error) { return Read(bytes.NewReader(b), int64(len(b))) }

// counts returns the samples of each method, and how often it is innermost.
func counts(p *profile.Profile) map[string][2]uint64 {
	out := map[string][2]uint64{}
	s := p.Select(profile.Filter{})
	for _, m := range s.List() {
		out[s.Func(m.Method).Name] = [2]uint64{m.Self.Samples, m.Total.Samples}
	}
	return out
}

// part returns a profile of the first n samples.
func part(p *profile.Profile, n int) *profile.Profile {
	out := *p
	out.Samples = p.Samples[:n]
	return &out
}

// Whenever writing stops, what was flushed is there: in many chunks, with constants that come later
// than their samples.
func TestStreamIsWholeAtAnyTime(t *testing.T) {
	p := profiletest.Java()
	out, flushed := &file{}, 0
	steps := 0
	out.saw = func(b []byte) {
		if steps++; steps%5 != 0 {
			return
		}
		got, err := parse(b)
		if err != nil {
			t.Fatalf("after %d samples: %v", flushed, err)
		}
		// The samples of this flush are all there or not at all.
		if n := len(got.Samples); n != flushed && n != flushed+100 {
			t.Fatalf("%d samples after %d", n, flushed)
		}
		if a, b := counts(got), counts(part(p, len(got.Samples))); len(a) != len(b) {
			t.Fatalf("%d methods, want %d", len(a), len(b))
		}
	}
	s := NewStream(out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
	s.MaxChunk = 20_000
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	for i, sample := range p.Samples {
		if i%100 == 0 && i > 0 {
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			flushed = i
		}
		if err := s.Add(sample); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if s.base == 0 {
		t.Error("there is one chunk only")
	}
	got, err := parse(out.b)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Samples) != len(p.Samples) || len(got.Threads) != len(p.Threads) || len(got.Meta.Notes) != len(p.Meta.Notes) {
		t.Errorf("%d samples, %d threads, notes %q", len(got.Samples), len(got.Threads), got.Meta.Notes)
	}
	a, b := counts(got), counts(p)
	for name, n := range b {
		if a[name] != n {
			t.Errorf("%s: %d, want %d", name, a[name], n)
		}
	}
}

// If the disk is full only what does not fit is lost, and the error is reported.
func TestFullOutput(t *testing.T) {
	p := profiletest.Java()
	whole := whole{p}
	for limit := 9_000; limit < 60_000; limit += 7_001 {
		out := &file{limit: limit}
		s := NewStream(out, whole, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
		flushed, err := 0, s.Flush()
		for i := 0; err == nil && i < len(p.Samples); i++ {
			if err = s.Add(p.Samples[i]); i%50 == 0 && err == nil {
				if err = s.Flush(); err == nil {
					flushed = i + 1
				}
			}
		}
		if !errors.Is(err, errFull) || !errors.Is(s.Flush(), errFull) {
			t.Fatalf("limit %d: %v", limit, err)
		}
		got, err := parse(out.b)
		if err != nil || len(got.Samples) != flushed {
			t.Fatalf("limit %d: %d samples, want %d: %v", limit, len(got.Samples), flushed, err)
		}
	}
}

// A file says that it was not finished until it is.
func TestUnfinished(t *testing.T) {
	p := profiletest.Java()
	unpack := func(b []byte) (*profile.Profile, error) {
		in, err := OpenPacked(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return Read(in, in.Size())
	}
	read := map[string]func(b []byte) (*profile.Profile, error){"plain": parse, "packed": unpack, "zstd": unpack}
	for name, begin := range map[string]newStream{"plain": NewStream, "packed": NewPackedStream, "zstd": NewZstdStream} {
		var out file
		s := begin(&out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
		s.MaxChunk = 20_000
		is := func(when string, want bool) {
			t.Helper()
			if got, err := read[name](out.b); err != nil || got.Meta.Unfinished != want {
				t.Errorf("%s, %s: %v, unfinished %t", name, when, err, !want)
			}
		}
		for i := range p.Samples {
			if err := s.Add(p.Samples[i]); err != nil {
				t.Fatal(err)
			}
			if i%2000 == 1999 {
				if err := s.Flush(); err != nil {
					t.Fatal(err)
				}
				is("while it is written", true)
			}
		}
		if s.base == 0 {
			t.Errorf("%s: there is one chunk only", name)
		}
		unfinished := bytes.Clone(out.b)
		if err := s.Finish(p); err != nil {
			t.Fatal(err)
		}
		is("at its end", false)
		if name == "plain" {
			// Earlier versions did not write it.
			out.b = bytes.ReplaceAll(unfinished, []byte("unfinished"), []byte("notafield!"))
			is("of an earlier candid", false)
			if got, err := parse(out.b); err != nil || got.Meta.Command != p.Meta.Command || got.Meta.Engine != p.Meta.Engine {
				t.Errorf("of an earlier candid: %v, %+v", err, got.Meta)
			}
		}
	}
	var at bytes.Buffer
	if err := Write(&at, p); err != nil {
		t.Fatal(err)
	}
	if got, err := parse(at.Bytes()); err != nil || got.Meta.Unfinished {
		t.Errorf("written at a stretch: %v, or not finished", err)
	}
}
