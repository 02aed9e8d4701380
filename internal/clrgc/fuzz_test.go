package clrgc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/candid-profiler/candid/internal/emulate"
)

// image is a process whose memory, code included, is the same bytes again and again.
type image struct {
	b      []byte
	change bool // what is read changes all the time
	n      byte
}

func (m *image) ReadAt(p []byte, addr uint64) error {
	if addr >= 1<<47 || len(m.b) == 0 {
		return fmt.Errorf("nothing at %#x", addr)
	}
	for i := range p {
		p[i] = m.b[(addr+uint64(i))%uint64(len(m.b))]
	}
	if m.change && len(p) > 0 {
		m.n++
		p[int(m.n)%len(p)] += m.n
	}
	return nil
}

func (m *image) Code(pc uint64, p []byte) int {
	if m.ReadAt(p, pc) != nil {
		return 0
	}
	return len(p)
}

// returnsTwo is a process whose collector's functions all do the same: mov eax, 2; ret.
func returnsTwo() []byte {
	b := make([]byte, 1024)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], 1024-8)
	}
	copy(b[1024-8:], []byte{0xb8, 2, 0, 0, 0, 0xc3, 0, 0})
	return b
}

// FuzzCollector reads the collector of a process that pretends to have one.
func FuzzCollector(f *testing.F) {
	f.Add(returnsTwo(), uint64(0), false)
	f.Add(returnsTwo(), uint64(0), true)
	// lock cmpxchg [rdi], rax; jne to itself: a lock that is never free
	spin := returnsTwo()
	copy(spin[1024-8:], []byte{0xb0, 2, 0xc3, 0xf0, 0x48, 0x0f, 0xb1, 0x07})
	f.Add(spin, uint64(8), false)
	f.Fuzz(func(t *testing.T, b []byte, heap uint64, change bool) {
		c, err := Open(&image{b: b, change: change}, heap, emulate.Convention(heap&1))
		if err != nil {
			if !errors.Is(err, ErrUnknown) {
				t.Fatal(err)
			}
			return
		}
		for range 2 {
			s, _, err := c.Read()
			if err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrBusy) {
				t.Fatal(err)
			}
			for k, g := range s.Last {
				if err == nil && g.Index != 0 && (g.Generation < 0 || g.Generation >= Generations || g.Kind != Kind(k) || g.Pause() < 0 || g.Elapsed < 0) {
					t.Fatalf("%+v", g)
				}
			}
			if _, err := c.InUse(); err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrBusy) {
				t.Fatal(err)
			}
			if len(c.space.kept) > maxLines || len(c.space.reads) > maxReads {
				t.Fatalf("%d lines and %d words are kept", len(c.space.kept), len(c.space.reads))
			}
		}
	})
}
