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

// gunzip unpacks as programs do that take zeros for the end of a file.
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

// packedInSteps is recordedInSteps for a packed file.
func packedInSteps(t testing.TB, n int) (*profile.Profile, *journal) {
	t.Helper()
	return inSteps(t, NewPackedStream, n)
}

// tornPackedFiles visits every file that such a recording leaves if it is ended at any
// time from its first whole step on.
func tornPackedFiles(t testing.TB, n int, stride int, visit func(name string, b []byte)) {
	t.Helper()
	_, j := packedInSteps(t, n)
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

// Whenever candid is ended a packed file is whole, as it is and unpacked.
func TestPackedEndedAnywhere(t *testing.T) {
	const n = 200
	p := part(profiletest.Java(), n)
	last, lastUnpacked, files := 0, 0, 0
	check := func(name string, got *profile.Profile, err error, last int) int {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		k := len(got.Samples)
		if k < last || k%20 != 0 || len(got.Meta.Notes) != len(p.Meta.Notes) {
			t.Fatalf("%s: %d samples after %d, notes %q", name, k, last, got.Meta.Notes)
		}
		if k > last {
			a, b := counts(got), counts(part(p, k))
			for m, c := range b {
				if a[m] != c {
					t.Fatalf("%s: %s: %v, want %v", name, m, a[m], c)
				}
			}
		}
		return k
	}
	tornPackedFiles(t, n, 389, func(name string, b []byte) {
		files++
		got, err := parsePacked(b)
		last = check(name, got, err, last)
		got, err = parse(gunzip(t, name, b))
		lastUnpacked = check(name+" unpacked", got, err, lastUnpacked)
		if last != lastUnpacked {
			t.Fatalf("%s: %d samples, unpacked %d", name, last, lastUnpacked)
		}
	})
	if last != n || files < 100 {
		t.Errorf("%d samples in the last of %d files", last, files)
	}
}

// What is left of a packed file that was cut off anywhere is read, and it says so.
func TestPackedCutOff(t *testing.T) {
	p, j := packedInSteps(t, 200)
	last := 0
	for cut := 0; cut <= len(j.b); cut += 211 {
		got, err := parsePacked(j.b[:cut])
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
	if last < len(p.Samples)-20 {
		t.Errorf("%d samples of %d", last, len(p.Samples))
	}
}

// A full disk costs what did not fit of a packed file too.
func TestPackedFullOutput(t *testing.T) {
	p := profiletest.Java()
	for limit := 7_000; limit < 40_000; limit += 3_001 {
		out := &file{limit: limit}
		s := NewPackedStream(out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
		s.MaxChunk = 60_000
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
		for _, read := range []func() (*profile.Profile, error){
			func() (*profile.Profile, error) { return parsePacked(out.b) },
			func() (*profile.Profile, error) { return parse(gunzip(t, "full", out.b)) },
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

// What unpacks to far more than it is, is refused before it is unpacked; what is not
// what it says is an error.
func TestPackedBomb(t *testing.T) {
	_, j := packedInSteps(t, 100)
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

// A file with holes may be as large as it likes: no member is taken for larger than what it
// unpacks to explains.
func TestPackedHoles(t *testing.T) {
	_, j := packedInSteps(t, 100)
	b := bytes.Clone(j.b)
	binary.LittleEndian.PutUint32(b[atMemberSize:], 1<<32-1)
	b[atFlag] = memberEvents
	if m, err := memberOf(b); err == nil {
		t.Errorf("a member of %d bytes is said to unpack to %d", m.size, m.unpacked)
	}
}

// FuzzPacked: no file makes the reader do worse than give an error.
func FuzzPacked(f *testing.F) {
	_, j := packedInSteps(f, 60)
	f.Add(j.b)
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

// Samples of which no stack is known stay that, where there is nothing else.
func TestNoStacksAtAll(t *testing.T) {
	b := profile.NewBuilder()
	b.Profile().Events = []profile.Event{{Name: "cpu", Unit: "nanoseconds", Period: 5}}
	for i := range 10 {
		b.Add(profile.Sample{Time: uint64(i), Thread: b.Thread(1, 2, "main"), Node: profile.RootNode, Weight: 5})
	}
	p := b.Finish()
	var plain, packed bytes.Buffer
	if err := errors.Join(Write(&plain, p), WritePacked(&packed, p)); err != nil {
		t.Fatal(err)
	}
	for _, read := range []func() (*profile.Profile, error){
		func() (*profile.Profile, error) { return parse(plain.Bytes()) },
		func() (*profile.Profile, error) { return parsePacked(packed.Bytes()) },
	} {
		got, err := read()
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Samples) != 10 || len(got.Nodes) != 1 || len(got.Meta.Notes) != 0 {
			t.Errorf("%d samples of %d nodes, notes %q", len(got.Samples), len(got.Nodes), got.Meta.Notes)
		}
	}
}
