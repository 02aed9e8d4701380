package jfr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// unzstandard unpacks with a zstd reader that knows nothing of candid.
func unzstandard(t testing.TB, name string, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// The variable part of a chunk's header lies within a page, wherever the chunk begins.
func TestZstdHeaderInOnePage(t *testing.T) {
	for end := range int64(pageSize + 200) {
		at := inPage(end)
		if at < end || (at+plainHead)/pageSize != (at+headerFrames-1)/pageSize {
			t.Fatalf("behind %d bytes it is at %d", end, at)
		}
	}
	b := frames([headerSize]byte{}, 1, 2)
	if len(b) != headerFrames || len(unzstandard(t, "a header", b)) != headerSize {
		t.Errorf("% x", b)
	}
}

// Every shut gate lies within a page, and is opened by one write.
func TestZstdGates(t *testing.T) {
	_, j := inSteps(t, NewZstdStream, 200)
	opened := 0
	for i, c := range j.changes[j.named:] {
		if len(c.data) == gateLength && bytes.Equal(c.data, make([]byte, gateLength)) {
			opened++
			if c.at/pageSize != (c.at+gateLength-1)/pageSize {
				t.Errorf("change %d opens a gate at byte %d, which crosses a page", i, c.at)
			}
		}
	}
	if opened < 5 {
		t.Errorf("%d gates were opened", opened)
	}
}

// It can be read anywhere, in any order, but not out of order any number of times.
func TestZstdReadAt(t *testing.T) {
	_, j := inSteps(t, NewZstdStream, 200)
	want := unzstandard(t, "all", j.b)
	in, err := OpenPacked(bytes.NewReader(j.b))
	if err != nil {
		t.Fatal(err)
	}
	if in.Size() != int64(len(want)) {
		t.Fatalf("%d bytes, want %d", in.Size(), len(want))
	}
	all := make([]byte, len(want))
	if n, err := in.ReadAt(all, 0); n != len(want) || err != nil || !bytes.Equal(all, want) {
		t.Fatalf("%d bytes of %d, %v", n, len(want), err)
	}
	if n, err := in.ReadAt(all, 10); n != len(want)-10 || !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes, %v", n, err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	refused := 0
	for range 200 {
		off := r.IntN(len(want))
		b := make([]byte, r.IntN(min(9000, len(want)-off)+1))
		switch n, err := in.ReadAt(b, int64(off)); {
		case errors.Is(err, ErrMalformed):
			refused++
		case err != nil || n != len(b) || !bytes.Equal(b, want[off:off+n]):
			t.Fatalf("%d of %d bytes at %d: %v", n, len(b), off, err)
		}
	}
	if refused == 0 || refused == 200 {
		t.Errorf("%d of 200 reads were refused", refused)
	}
}

// Reading what was added unpacks nothing twice.
func TestZstdFollowedOnce(t *testing.T) {
	p := profiletest.Java()
	out := &file{}
	s := NewZstdStream(out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
	s.MaxChunk = 100_000
	var tail *Tail
	got, steps := 0, 0
	for i, sample := range p.Samples {
		if err := s.Add(sample); err != nil {
			t.Fatal(err)
		}
		if i%50 > 0 {
			continue
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		if tail == nil {
			var err error
			if tail, err = OpenTail(growing{out}); err != nil {
				t.Fatal(err)
			}
		}
		fresh, err := tail.Next()
		if err != nil {
			t.Fatal(err)
		}
		if got += len(fresh); got != i+1 {
			t.Fatalf("%d samples of %d", got, i+1)
		}
		steps++
	}
	u := tail.r.in.(*unzstd)
	if u.again > 0 || len(u.chunks) < 2 || steps < 100 {
		t.Errorf("%d chunks were begun anew in %d steps of %d chunks", u.again, steps, len(u.chunks))
	}
}

// Data that is written while a file is read is left to the next reader: nothing is reported as
// missing.
func TestZstdReadWhileItGrows(t *testing.T) {
	p, j := inSteps(t, NewZstdStream, 200)
	var f file
	last := 0
	for i, c := range j.changes {
		if c.data == nil {
			continue // the last one
		}
		f.WriteAt(c.data, c.at)
		if i+1 < j.named {
			continue
		}
		before := file{b: bytes.Clone(f.b)}
		in, err := OpenPacked(growing{&before})
		if err != nil {
			t.Fatal(err)
		}
		size := in.Size()
		before.b = j.b
		got, err := Read(in, size)
		if err != nil {
			t.Fatalf("after change %d: %v", i, err)
		}
		if len(got.Samples) < last || len(got.Meta.Notes) != len(p.Meta.Notes) {
			t.Fatalf("after change %d: %d samples after %d, notes %q", i, len(got.Samples), last, got.Meta.Notes)
		}
		last = len(got.Samples)
	}
	if last != 200 {
		t.Errorf("%d samples", last)
	}
}

// Uniform data is padded so that it can be read.
func TestZstdAllAlike(t *testing.T) {
	b := profile.NewBuilder()
	b.Profile().Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 5}}
	thread := b.Thread(1, 2, "main")
	for range 100_000 {
		b.Add(profile.Sample{Time: 7, Thread: thread, Node: profile.RootNode, Weight: 5})
	}
	p := b.Finish()
	var packed bytes.Buffer
	if err := WriteZstd(&packed, p); err != nil {
		t.Fatal(err)
	}
	plain := unzstandard(t, "all alike", packed.Bytes())
	if n := packed.Len(); n*mostZstd < len(plain) || n > len(plain)/100 {
		t.Errorf("%d bytes are packed to %d", len(plain), n)
	}
	got, err := parsePacked(packed.Bytes())
	if err != nil || len(got.Samples) != 100_000 {
		t.Errorf("%v", err)
	}
}

// A changed byte either has no effect on what is read, or is reported.
func TestZstdDamaged(t *testing.T) {
	p, j := inSteps(t, NewZstdStream, 200)
	var one bytes.Buffer
	if err := WriteZstd(&one, p); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"chunks": j.b, "one chunk": one.Bytes()} {
		t.Run(name, func(t *testing.T) { zstdDamaged(t, b) })
	}
}

func zstdDamaged(t *testing.T, b []byte) {
	want := unzstandard(t, "all", b)
	whole, err := parsePacked(b)
	if err != nil || whole.Meta.Unfinished {
		t.Fatalf("%v, %v", whole, err)
	}
	r := rand.New(rand.NewPCG(7, 8))
	sums := 0
	for i := range headerFrames + 300 {
		bad, at := bytes.Clone(b), i
		if at >= headerFrames {
			at = r.IntN(len(bad))
		}
		if bad[at] ^= byte(1 + r.IntN(255)); !IsPacked(bad) {
			continue
		}
		in, err := OpenPacked(bytes.NewReader(bad))
		var got []byte
		if err == nil {
			got = make([]byte, in.Size())
			_, err = in.ReadAt(got, 0)
		}
		if err != nil {
			if strings.Contains(err.Error(), "checksum of the chunk") {
				sums++
			}
			continue
		}
		if len(got) == 0 || !bytes.HasPrefix(want, got) {
			t.Errorf("byte %d was %#x and is %#x: it unpacks to %d bytes of something else", at, b[at], bad[at], len(got))
		}
		if len(got) < len(want) {
			if p, err := parsePacked(bad); err == nil && len(p.Meta.Notes) == len(whole.Meta.Notes) && !p.Meta.Unfinished {
				t.Errorf("byte %d was %#x and is %#x: %d bytes of %d are read, notes %q", at, b[at], bad[at], len(got), len(want), p.Meta.Notes)
			}
		}
	}
	if sums == 0 {
		t.Error("the checksum of no chunk was wrong")
	}
}

// hostileZstd returns a recording whose first chunk has other data as its second frame, with these
// sizes of the chunk and its first piece.
func hostileZstd(t testing.TB, size, first int64, blocks []byte) []byte {
	t.Helper()
	_, j := inSteps(t, NewZstdStream, 60)
	var h [headerSize]byte
	copy(h[:], j.b[plainHead:])
	binary.BigEndian.PutUint64(h[atSize:], uint64(size))
	b := frames(h, uint32(first), 0)
	b = append(b, j.b[headerFrames:headerFrames+frameHead]...)
	return append(b, blocks...)
}

// A frame that unpacks to far more than its size is refused before it is unpacked; one that is not
// what it claims is an error.
func TestZstdHostile(t *testing.T) {
	alike := func(n int) []byte { // blocks of one byte each
		var b []byte
		for range n {
			b = append(b, byte(mostBlock<<3&0xff|2), byte(mostBlock>>5&0xff), byte(mostBlock>>13&0xff), 0)
		}
		return append(b, endBlock[:]...)
	}
	window := hostileZstd(t, 1000, 900, alike(1))
	window[headerFrames+5] = 20 << 3 // of a gigabyte
	for name, b := range map[string][]byte{
		"a bomb":                       hostileZstd(t, 1<<32, 1<<27, alike(1000)),
		"a bomb in pieces":             hostileZstd(t, 1<<32, 100_000, alike(1000)),
		"a piece that is not there":    hostileZstd(t, 1<<20, 1<<18, alike(1)),
		"a piece longer than the rest": hostileZstd(t, 1000, 2000, alike(1)),
		"a piece of nothing":           hostileZstd(t, 1<<20, 0, alike(1)),
		"a large window":               window,
		"empty blocks":                 hostileZstd(t, 1000, 900, make([]byte, 6<<20)),
		"no block":                     hostileZstd(t, 1000, 900, []byte{0xff, 0xff, 0xff, 0xff}),
		"a block cut off":              hostileZstd(t, 1000, 900, alike(3)[:3]),
		"nothing":                      hostileZstd(t, 1000, 900, nil),
		"size of the header only":      hostileZstd(t, headerSize, 900, alike(1)),
		"an endless chunk":             hostileZstd(t, -1, 900, alike(1)),
	} {
		if p, err := parsePacked(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, %v", name, p, err)
		}
		if tail, err := OpenTail(bytes.NewReader(b)); err == nil {
			if fresh, err := tail.Next(); err == nil && len(fresh) > 0 {
				t.Errorf("%s: %d samples of it are followed", name, len(fresh))
			}
		}
	}
}

// FuzzZstd changes the unpacked content of the blocks: the rest stays valid.
func FuzzZstd(f *testing.F) {
	_, j := inSteps(f, NewZstdStream, 60)
	plain := unzstandard(f, "the seed", j.b)
	size := binary.BigEndian.Uint64(plain[atSize:])
	first := binary.LittleEndian.Uint32(j.b[atFirst:])
	f.Add(plain[headerSize:size], first, uint32(size), byte(0))
	var z *zstd.Encoder // a new one for each input takes longer than all else
	f.Fuzz(func(t *testing.T, content []byte, first, size uint32, cut byte) {
		if len(content) == 0 {
			return // a chunk's first piece has at least its metadata
		}
		out := &file{}
		var h [headerSize]byte
		copy(h[:], plain)
		binary.BigEndian.PutUint64(h[atSize:], uint64(size))
		p := &zpacker{z: z}
		if err := p.put(out, &piece{first: true, head: content, header: h}); err != nil {
			t.Fatal(err)
		}
		z = p.z
		counts := content[:min(int64(max(size, headerSize)-headerSize), int64(len(content)))]
		copy(out.b, frames(h, first, crc32.ChecksumIEEE(counts)))
		b := out.b[:len(out.b)-min(int(cut), len(out.b))]
		if p, err := parsePacked(b); err == nil {
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if tail, err := OpenTail(bytes.NewReader(b)); err == nil {
			_, _ = tail.Next()
		}
	})
}
