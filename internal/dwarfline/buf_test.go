package dwarfline

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// A section in a file reads like the same one in memory, whatever is read of it in which order, and
// is not held in memory.
func TestStoredReadsAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	content := make([]byte, 5*mostWindow+77)
	for i := range content {
		if content[i] = byte(rng.Uint32()); rng.IntN(300) > 0 && content[i] == 0 {
			content[i] = 1 // strings of several windows
		}
	}
	memory, file := Bytes(content), stored(content)
	a, b := buf{s: &memory, order: binary.LittleEndian}, buf{s: &file, order: binary.LittleEndian}
	size := uint64(len(content))
	place := func() uint64 { return rng.Uint64N(size + size/50) }
	for i := range 200000 {
		var x, y uint64
		what := rng.IntN(12)
		switch what {
		case 0:
			off, end := place(), place()
			if rng.IntN(10) == 0 {
				off = rng.Uint64()
			}
			if rng.IntN(2) == 0 {
				end = size
			}
			a.seek(off, end)
			b.seek(off, end)
		case 1:
			n := rng.Uint64N(3000)
			a.skip(n)
			b.skip(n)
		case 2:
			end := place()
			a.limit(end)
			b.limit(end)
		case 3:
			off := place()
			a.jump(off)
			b.jump(off)
		case 4:
			a.skipString()
			b.skipString()
		case 5:
			n := rng.Uint64N(300)
			p, q := a.take(n), b.take(n)
			if !bytes.Equal(p, q) {
				t.Fatalf("read %d: % x, % x", i, p, q)
			}
		case 6:
			x, y = a.uleb(), b.uleb()
		case 7:
			x, y = uint64(a.sleb()), uint64(b.sleb())
		default:
			n := []uint8{1, 2, 3, 4, 8}[what-7]
			x, y = a.uint(n), b.uint(n)
		}
		if x != y || a.bad != b.bad || !a.bad && a.off != b.off {
			t.Fatalf("read %d (%d): %#x, %#x; %v, %v; at %#x, %#x", i, what, x, y, a.bad, b.bad, a.off, b.off)
		}
		if off := place(); i%100 == 0 && memory.text(off) != file.text(off) {
			t.Fatalf("text at %#x: %q, %q", off, memory.text(off), file.text(off))
		}
	}
	if cap(b.own) > mostWindow {
		t.Errorf("%d bytes of %d are held", cap(b.own), len(content))
	}
}

// cutShort fails reads behind some place, as a file does that has been truncated.
type cutShort struct {
	b  []byte
	at int64
}

var errCut = errors.New("cut short")

func (c cutShort) ReadAt(p []byte, off int64) (int, error) {
	if off >= c.at {
		return 0, errCut
	}
	if n := copy(p, c.b[off:c.at]); n < len(p) {
		return n, errCut
	}
	return len(p), nil
}

// Reading ends where the file fails.
func TestStoredFails(t *testing.T) {
	content := bytes.Repeat([]byte{0x81}, 4*firstWindow)
	s := Stored(io.NewSectionReader(cutShort{content, firstWindow + 9}, 0, int64(len(content))))
	b := buf{s: &s, order: binary.LittleEndian}
	b.seek(0, s.size)
	n := 0
	for ; !b.bad; n++ {
		b.u8()
	}
	if n != firstWindow+10 {
		t.Errorf("%d bytes were read, of %d", n-1, firstWindow+9)
	}
	if got := s.text(firstWindow); got != "" {
		t.Errorf("a string that cannot be read is %q", got)
	}
	b.seek(0, s.size)
	if b.skipString(); !b.bad {
		t.Error("a string was skipped that has no end")
	}
}
