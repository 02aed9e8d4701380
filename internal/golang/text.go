package golang

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/objfile"
)

// locate finds the base of function offsets. Up to Go 1.25 it is in the table's header, unless the
// program is position-independent and the linker left that to the loader; since Go 1.26 it is only
// in a structure whose address is not published. It is therefore checked, and searched for if
// necessary, in the code itself: runtime.goexit only calls runtime.goexit1, and the table says how
// far apart the two are.
func (t *Table) locate(f loaded) error {
	if !t.layout.offsets {
		if !inText(f, t.first) {
			return fmt.Errorf("%w: its functions are not where the code is (a position-independent program of Go 1.17 or before)", ErrNoTable)
		}
		return nil
	}
	if t.text != 0 && !inText(f, t.text+t.first) {
		t.text = 0
	}
	exits, targets := t.exits()
	given, left := t.text, uint64(maxSearch)
	for _, at := range exits {
		if given != 0 && t.callsAt(f, given, at, targets) {
			return nil
		}
		for i := range f.parts {
			p := &f.parts[i]
			if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 {
				continue
			}
			if text, ok := t.search(f, p, at, targets, &left); ok {
				t.text = text
				return nil
			}
		}
	}
	if given != 0 { // code without the runtime: a plugin
		return nil
	}
	return fmt.Errorf("%w: its code was not found", ErrNoTable)
}

func inText(f loaded, addr uint64) bool {
	for _, p := range f.parts {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			return true
		}
	}
	return false
}

// exits returns where runtime.goexit and runtime.goexit1 start. Each may exist twice, for the two
// calling conventions.
func (t *Table) exits() (exits, targets []uint64) {
	// Records and names lie nearly in the order of the functions.
	index, records, names := &window{r: t.r}, &window{r: t.r}, &window{r: t.r}
	for i := range t.n {
		f, ok := t.fields(index, records, i)
		if !ok {
			continue
		}
		start, _ := t.start(index, i)
		switch t.string(names, t.names+int64(f.name), maxSpecial) {
		case "runtime.goexit":
			exits = append(exits, start)
		case "runtime.goexit1":
			targets = append(targets, start)
		}
		if len(exits) >= 4 || len(targets) >= 4 || len(targets) == 2 && len(exits) > 0 {
			break
		}
	}
	return exits, targets
}

// exitSize is how many bytes of runtime.goexit are examined.
const exitSize = 8

// calls reports whether b is the start of a runtime.goexit at an offset that calls
// one of targets: a nop, then the call.
func (t *Table) calls(b []byte, at uint64, targets []uint64) bool {
	var to uint64
	if t.arch == cpu.ARM64 {
		w := binary.LittleEndian.Uint32(b[4:])
		if w>>26 != 0b100101 {
			return false
		}
		to = at + 4 + uint64(int64(int32(w<<6)>>6)*4)
	} else {
		if b[0] != 0x90 || b[1] != 0xe8 {
			return false
		}
		to = at + 6 + uint64(int64(int32(binary.LittleEndian.Uint32(b[2:]))))
	}
	for _, target := range targets {
		if to == target {
			return true
		}
	}
	return false
}

// callsAt reports whether, with this text address, runtime.goexit is where the table says.
func (t *Table) callsAt(f loaded, text, at uint64, targets []uint64) bool {
	for _, p := range f.parts {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && text+at >= p.Vaddr && text+at-p.Vaddr+exitSize <= p.Filesz {
			var b [exitSize]byte
			_, err := f.ReadAt(b[:], int64(p.Off+text+at-p.Vaddr))
			return err == nil && t.calls(b[:], at, targets)
		}
	}
	return false
}

// search looks for runtime.goexit in a segment and returns the text address.
// It reads at most *left bytes, which it subtracts what it has read from.
func (t *Table) search(r io.ReaderAt, p *objfile.Segment, at uint64, targets []uint64, left *uint64) (uint64, bool) {
	// Functions are aligned, to 16 bytes at least.
	const align = 16
	buf := make([]byte, 1<<18)
	for off := uint64(0); off < p.Filesz && *left > 0; off += uint64(len(buf)) {
		*left -= min(*left, uint64(len(buf)))
		n, _ := r.ReadAt(buf[:min(uint64(len(buf)), p.Filesz-off)], int64(p.Off+off))
		if n < exitSize {
			break
		}
		for i := int((align - (p.Vaddr+off)%align) % align); i+exitSize <= n; i += align {
			if !t.calls(buf[i:], at, targets) {
				continue
			}
			text := p.Vaddr + off + uint64(i) - at
			if text != 0 && text+t.first >= p.Vaddr && text+t.end <= p.Vaddr+p.Memsz {
				return text, true
			}
		}
	}
	return 0, false
}

// window reads a file in pieces, for many small reads at mostly increasing offsets.
type window struct {
	r   io.ReaderAt
	at  int64
	n   int
	buf [1 << 15]byte
}

// ReadAt implements io.ReaderAt for reads that are much shorter than a piece.
func (w *window) ReadAt(p []byte, at int64) (int, error) {
	if at < w.at || at+int64(len(p)) > w.at+int64(w.n) {
		w.at = at
		w.n, _ = w.r.ReadAt(w.buf[:], at)
	}
	n := copy(p, w.buf[at-w.at:w.n])
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}
