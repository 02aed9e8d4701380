package jfr

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// gunzip unpacks like programs that take zeros for the end of a file.
func gunzip(t testing.TB, name string, b []byte) []byte {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(b))
	var out []byte
	for {
		next, err := in.Peek(1)
		if errors.Is(err, io.EOF) || err == nil && next[0] == 0 {
			return out
		}
		z, err := gzip.NewReader(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		z.Multistream(false)
		data, err := io.ReadAll(z)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, data...)
	}
}

func parsePacked(b []byte) (*profile.Profile, error) {
	p, err := OpenPacked(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return Read(p, p.Size())
}

// tornAtEnd is for files that grow by what is written after their end: any part of that may be
// there, with zeros before it.
func tornAtEnd(t testing.TB, form *form, n, stride int, visit func(name string, b []byte)) {
	t.Helper()
	_, j := inSteps(t, form.begin, n)
	var f file
	for i, c := range j.changes {
		if c.data == nil {
			t.Fatal("the file was made shorter")
		}
		whole := c.at/pageSize == (c.at+int64(len(c.data))-1)/pageSize
		if !whole && int(c.at) < len(f.b) {
			t.Fatalf("change %d, %d bytes at %d, can be torn and changes what is there", i, len(c.data), c.at)
		}
		if i >= j.named {
			before := bytes.Clone(f.b)
			for cut := stride; cut < len(c.data) && int(c.at) >= len(before); cut += stride {
				f.b = bytes.Clone(before)
				f.WriteAt(c.data[:cut], c.at)
				visit(fmt.Sprintf("%04d-%05d", i, cut), f.b)
			}
			f.b = before
		}
		f.WriteAt(c.data, c.at)
		if i+1 >= j.named {
			visit(fmt.Sprintf("%04d", i), f.b)
		}
	}
}

// The rest of a packed file that was cut off anywhere is read, and reported as cut off.
func TestPackedCutOff(t *testing.T) {
	for _, f := range packedForms {
		t.Run(f.name, func(t *testing.T) {
			p, j := inSteps(t, f.begin, 200)
			last := 0
			for cut := len(j.b) % 211; cut <= len(j.b); cut += 211 {
				got, err := f.read(j.b[:cut])
				if err != nil {
					if last > 0 || !errors.Is(err, ErrMalformed) {
						t.Fatalf("%d of %d bytes: %v", cut, len(j.b), err)
					}
					continue
				}
				if len(got.Samples) < last {
					t.Fatalf("%d of %d bytes: %d samples after %d", cut, len(j.b), len(got.Samples), last)
				}
				last = len(got.Samples)
			}
			if last != len(p.Samples) {
				t.Errorf("%d samples of %d", last, len(p.Samples))
			}
		})
	}
}

// If the disk is full, a packed file too lacks only what did not fit.
func TestPackedFullOutput(t *testing.T) {
	for _, f := range packedForms {
		t.Run(f.name, func(t *testing.T) { packedFullOutput(t, &f) })
	}
}

func packedFullOutput(t *testing.T, f *form) {
	p := profiletest.Java()
	for limit := 7_000; limit < 40_000; limit += 1_001 {
		out := &file{limit: limit}
		s := f.begin(out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
		s.MaxChunk = 60_000
		flushed, err := 0, s.Flush()
		if err != nil && len(out.b) == 0 {
			continue // not even the first step fits: the file never gets its name
		}
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
		for _, read := range []func() (*profile.Profile, error){
			func() (*profile.Profile, error) { return f.read(out.b) },
			func() (*profile.Profile, error) { return parse(f.unpack(t, "full", out.b)) },
		} {
			if got, err := read(); err != nil || len(got.Samples) != flushed {
				t.Fatalf("limit %d: want %d samples: %v", limit, flushed, err)
			}
		}
	}
}

// Every header of a chunk lies within a page, wherever the chunk begins.
func TestPackedHeaderInOnePage(t *testing.T) {
	for end := range int64(pageSize + 200) {
		p := packer{end: end}
		at := p.putHeader([headerSize]byte{})
		if at/pageSize != (at+headerSize+memberTail-1)/pageSize {
			t.Fatalf("behind %d bytes it is at %d", end, at)
		}
		m, err := memberOf(p.b.Bytes())
		if err != nil || m.size != int64(p.b.Len()) || end+m.head+storedHead != at {
			t.Fatalf("behind %d bytes: %+v, %v", end, m, err)
		}
		if got := gunzip(t, "a header", p.b.Bytes()); len(got) != headerSize {
			t.Fatalf("behind %d bytes it unpacks to %d", end, len(got))
		}
	}
}

// A member that unpacks to far more than its size is refused before it is unpacked; one that is not
// what it claims is an error.
func TestPackedBomb(t *testing.T) {
	_, j := inSteps(t, NewPackedStream, 100)
	bomb := packer{end: int64(len(j.b))}
	zeros := make([]byte, 8<<20)
	if err := bomb.member(memberEvents, 0, zeros, nil); err != nil {
		t.Fatal(err)
	}
	if bomb.b.Len()*mostRatio < len(zeros) {
		t.Errorf("%d bytes are packed to %d", len(zeros), bomb.b.Len())
	}
	for name, change := range map[string]func(b []byte, at int){
		"a length that nothing packed has": func(b []byte, at int) { binary.LittleEndian.PutUint32(b[at+atUnpacked:], 1<<28) },
		"a longer one":                     func(b []byte, at int) { b[at+atUnpacked]++ },
		"a shorter one":                    func(b []byte, at int) { b[at+atUnpacked]-- },
		"a wrong checksum":                 func(b []byte, at int) { b[at+int(binary.LittleEndian.Uint32(b[at+atMemberSize:]))-8] ^= 1 },
		"a checkpoint that is none":        func(b []byte, at int) { b[at+atHint] ^= 1 },
	} {
		b := bytes.Clone(j.b)
		m, err := memberOf(b)
		if err != nil {
			t.Fatal(err)
		}
		change(b, int(m.size))
		if _, err := parsePacked(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file with holes may have any size: no member is taken to be larger than its unpacked length
// explains.
func TestPackedHoles(t *testing.T) {
	_, j := inSteps(t, NewPackedStream, 100)
	b := bytes.Clone(j.b)
	binary.LittleEndian.PutUint32(b[atMemberSize:], 1<<32-1)
	b[atFlag] = memberEvents
	if m, err := memberOf(b); err == nil {
		t.Errorf("a member of %d bytes is said to unpack to %d", m.size, m.unpacked)
	}
}

// FuzzPacked: whatever the file, the reader does no worse than return an error.
func FuzzPacked(f *testing.F) {
	for _, form := range packedForms {
		_, j := inSteps(f, form.begin, 60)
		f.Add(j.b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := parsePacked(b); err == nil {
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
		}
		tail, err := OpenTail(bytes.NewReader(b))
		if err != nil {
			return
		}
		_, _ = tail.Next()
	})
}

// Samples without a known stack stay that way, if there is nothing else.
func TestNoStacksAtAll(t *testing.T) {
	b := profile.NewBuilder()
	b.Profile().Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 5}}
	for i := range 10 {
		b.Add(profile.Sample{Time: uint64(i), Thread: b.Thread(1, 2, "main"), Node: profile.RootNode, Weight: 5})
	}
	p := b.Finish()
	for _, f := range allForms {
		out := &file{}
		s := f.begin(out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
		if err := addAll(s, p, func(int64) error { return nil }); err != nil {
			t.Fatal(err)
		}
		got, err := f.read(out.b)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Samples) != 10 || len(got.Nodes) != 1 || len(got.Meta.Notes) != 0 {
			t.Errorf("%s: %d samples of %d nodes, notes %q", f.name, len(got.Samples), len(got.Nodes), got.Meta.Notes)
		}
	}
}
