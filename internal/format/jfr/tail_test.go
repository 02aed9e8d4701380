package jfr

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// growing is a file in memory, up to what is written.
type growing struct{ f *file }

func (g growing) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(g.f.b)) {
		return 0, io.EOF
	}
	n := copy(p, g.f.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// collected is what a Tail returned.
type collected struct {
	tail    *Tail
	samples []profile.Sample
}

func (c *collected) next(t *testing.T) {
	t.Helper()
	fresh, err := c.tail.Next()
	if err != nil {
		t.Fatalf("after %d samples: %v", len(c.samples), err)
	}
	c.samples = append(c.samples, fresh...)
}

func (c *collected) profile() *profile.Profile {
	b := c.tail.Builder()
	p := &profile.Profile{Meta: *b.Meta(), Events: c.tail.Events(), Losses: c.tail.Losses(), Syscalls: c.tail.Syscalls(),
		Processes: b.Processes(), Threads: b.Threads(), Funcs: b.Funcs(), Frames: b.Frames(), Samples: c.samples}
	for i := range b.Nodes() {
		p.Nodes = append(p.Nodes, b.At(uint32(i)))
	}
	return p
}

// TestTail reads a recording after every single write to it, also between those that belong
// together, and gets what a reader of the whole file does.
func TestTail(t *testing.T) {
	for _, f := range allForms {
		t.Run(f.name, func(t *testing.T) { followed(t, &f) })
	}
}

func followed(t *testing.T, f *form) {
	p := profiletest.Java()
	out := &file{}
	got := &collected{}
	begin := func() {
		tail, err := OpenTail(growing{out}) // while a file is empty it is not known whether it will be packed
		if err != nil {
			t.Fatal(err)
		}
		got.tail = tail
		got.next(t)
	}
	begin()
	asked, pieces := 0, 0
	out.saw = func([]byte) {
		if got.tail.Began() == 0 {
			begin()
		}
		before := len(got.samples)
		got.next(t)
		asked++
		if len(got.samples) > before {
			pieces++
		}
	}
	s := f.begin(out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
	s.MaxChunk = 20_000
	for i, sample := range p.Samples {
		if err := s.Add(sample); err != nil {
			t.Fatal(err)
		}
		if i%70 == 0 {
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			if len(got.samples) != i+1 {
				t.Fatalf("%d samples were read of %d", len(got.samples), i+1)
			}
		}
	}
	if err := s.Finish(p); err != nil {
		t.Fatal(err)
	}
	if s.base == 0 || pieces < 100 || asked <= pieces {
		t.Errorf("%d pieces in %d looks, in one chunk: %v", pieces, asked, s.base == 0)
	}
	whole, err := f.read(out.b)
	if err != nil {
		t.Fatal(err)
	}
	tailed := got.profile()
	if err := tailed.Check(); err != nil {
		t.Fatal(err)
	}
	a, b := counts(tailed), counts(whole)
	if len(a) != len(b) || len(tailed.Samples) != len(whole.Samples) || tailed.Losses != whole.Losses || len(tailed.Meta.Notes) != len(whole.Meta.Notes) || tailed.Meta.Duration != whole.Meta.Duration {
		t.Errorf("%d methods, %d samples, %+v; want %d, %d, %+v", len(a), len(tailed.Samples), tailed.Losses, len(b), len(whole.Samples), whole.Losses)
	}
	for name, n := range b {
		if a[name] != n {
			t.Errorf("%s: %d, want %d", name, a[name], n)
		}
	}
	for i := range whole.Samples {
		if x, y := tailed.Samples[i], whole.Samples[i]; x.Time != y.Time || x.Weight != y.Weight || x.State != y.State || x.End != y.End {
			t.Fatalf("sample %d is %+v, want %+v", i, x, y)
		}
	}
}

// A recording of another profiler cannot be read this way, and damage is an error.
func TestTailRefuses(t *testing.T) {
	if _, err := NewTail(bytes.NewReader([]byte("not a recording, not even the beginning of one, whatever it is called, is it"))).Next(); err != nil {
		t.Errorf("what is no recording yet: %v", err)
	}
	p := profiletest.Java()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	failed := 0
	for range 300 {
		data := bytes.Clone(b.Bytes())
		for range 3 {
			data[headerSize+r.IntN(len(data)-headerSize)] = byte(r.Uint32())
		}
		tail := NewTail(bytes.NewReader(data))
		for range 3 {
			if _, err := tail.Next(); err != nil {
				failed++
				if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrOthers) && !errors.Is(err, io.EOF) {
					t.Logf("damage gives %v", err)
				}
				break
			}
		}
	}
	if failed == 0 {
		t.Error("no damage was noticed")
	}
}

// FuzzTail reads any bytes as they are written, in two pieces, while the first may change.
func FuzzTail(f *testing.F) {
	own := small(f)
	f.Add(own, uint16(len(own)/2), uint16(0), byte(0))
	f.Add(own, uint16(0), uint16(atSize+6), byte(1))
	f.Add(foreignFile(f), uint16(100), uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, data []byte, first, at uint16, change byte) {
		out := &file{b: data[:min(int(first), len(data))]}
		c := &collected{tail: NewTail(growing{out})}
		for range 3 {
			fresh, err := c.tail.Next()
			c.samples = append(c.samples, fresh...)
			if err != nil {
				break
			}
			out.b = bytes.Clone(data)
			if int(at) < len(data) {
				out.b[at] ^= change
			}
		}
		if err := c.profile().Check(); err != nil {
			t.Fatal(err)
		}
	})
}
