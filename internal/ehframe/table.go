package ehframe

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"sync"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/objfile"
)

// Table is the unwind tables of one file. It may be used by several goroutines.
type Table struct {
	mu    sync.Mutex
	eh    *frames
	debug *frames
	// load reads .debug_frame, on the first address that is in no other table. It is nil once that
	// has been done.
	load func() *frames
}

// ErrNone is returned for files without unwind tables.
var ErrNone = errors.New("no unwind tables")

// Open finds the tables of f. Little is read: the index, and .eh_frame itself if it is small. f
// must stay open as long as the Table is used.
func Open(f *objfile.File) (*Table, error) {
	arch, err := f.Arch()
	if err != nil {
		return nil, err
	}
	t := &Table{}
	text := uint64(0)
	if s := f.Section(".text"); s != nil {
		text = s.Addr
	}
	t.eh = openEH(f, arch, text)
	s := f.Section(".debug_frame")
	if s == nil {
		s = f.Section(".zdebug_frame")
	}
	if s != nil {
		t.load = func() *frames { return openDebug(f, s, arch, text) }
	}
	if t.eh == nil && t.load == nil {
		return nil, ErrNone
	}
	return t, nil
}

func newFrames(arch cpu.Arch) *frames {
	return &frames{arch: arch, wide: true, cies: map[uint64]*cie{}, rules: map[string]*Rule{}, keyBytes: make([]byte, 0, 512)}
}

// openEH finds .eh_frame by its section, or by the program header of its index if the sections have
// been stripped.
func openEH(f *objfile.File, arch cpu.Arch, text uint64) *frames {
	fr := newFrames(arch)
	fr.text = text
	at := uint64(0)
	for i := range f.Segments {
		p := &f.Segments[i]
		const maxHeader = 64 << 20
		if p.Type == elf.PT_GNU_EH_FRAME && p.Filesz >= 8 && p.Filesz <= maxHeader {
			b := make([]byte, min(p.Filesz, headerBytes))
			if n, _ := f.SegmentReader(p).ReadAt(b, 0); n < len(b) {
				break
			}
			fr.hdr = p.Vaddr
			ehFrame, table, n, ok := parseHeader(b, p.Filesz, fr.hdr, true)
			if !ok {
				break
			}
			at = ehFrame
			if n > 0 {
				src, err := newSource(io.NewSectionReader(f.SegmentReader(p), int64(table), int64(n)*8), uint64(n)*8)
				if err == nil {
					fr.index.table, fr.index.n, fr.index.hdr = src, n, fr.hdr
				}
			}
			break
		}
	}
	if s := f.Section(".eh_frame"); s != nil && s.Size > 0 {
		if at != s.Addr {
			fr.index.n = 0
		}
		src, err := newSource(f.SectionReader(s), s.Size)
		if err != nil {
			return nil
		}
		fr.addr, fr.bytes = s.Addr, src
		return fr
	}
	for i := range f.Segments {
		p := &f.Segments[i]
		if at != 0 && p.Type == elf.PT_LOAD && at >= p.Vaddr && at-p.Vaddr < p.Filesz {
			skip := at - p.Vaddr
			size := p.Filesz - skip
			src, err := newSource(io.NewSectionReader(f.SegmentReader(p), int64(skip), int64(size)), size)
			if err != nil {
				return nil
			}
			fr.addr, fr.bytes = at, src
			return fr
		}
	}
	return nil
}

// openDebug reads .debug_frame, which may be compressed.
func openDebug(f *objfile.File, s *objfile.Section, arch cpu.Arch, text uint64) *frames {
	const maxDebug = 256 << 20
	if s.Size > maxDebug {
		return nil
	}
	fr := newFrames(arch)
	fr.debug, fr.text = true, text
	if !s.Packed() && s.Name == ".debug_frame" {
		src, err := newSource(f.SectionReader(s), s.Size)
		if err != nil {
			return nil
		}
		fr.bytes = src
		return fr
	}
	b, err := f.Data(s, maxDebug)
	if err != nil {
		return nil
	}
	fr.bytes = source{whole: b, size: uint64(len(b))}
	return fr
}

// FromBytes makes a Table from the bytes of an .eh_frame that is at addr, and optionally of its
// index at hdrAddr (nil if there is none).
func FromBytes(arch cpu.Arch, ehFrame []byte, addr uint64, hdr []byte, hdrAddr uint64) *Table {
	fr := newFrames(arch)
	fr.addr, fr.bytes = addr, source{whole: bytes.Clone(ehFrame), size: uint64(len(ehFrame))}
	if at, table, n, ok := parseHeader(hdr, uint64(len(hdr)), hdrAddr, true); ok && at == addr {
		fr.hdr, fr.index.n, fr.index.hdr = hdrAddr, n, hdrAddr
		fr.index.table = source{whole: hdr[table : table+uint64(n)*8], size: uint64(n) * 8}
	}
	return &Table{eh: fr}
}

// Lookup returns the rule for the instruction at addr, or nil if no table covers it or its entry is
// damaged.
func (t *Table) Lookup(addr uint64) *Rule {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, e, ok := t.function(addr)
	if !ok {
		return nil
	}
	r, err := f.rule(&e, addr)
	if err != nil || r.CFAReg == noColumn && r.CFAExpr == nil {
		return nil
	}
	return r
}

// Function returns the bounds of the function, or part of one, that addr lies in.
func (t *Table) Function(addr uint64) (start, end uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, e, ok := t.function(addr)
	return e.start, e.end, ok
}

func (t *Table) function(addr uint64) (*frames, fde, bool) {
	if e, ok := t.eh.covering(addr); ok {
		return t.eh, e, true
	}
	if t.load != nil {
		t.debug, t.load = t.load(), nil
	}
	e, ok := t.debug.covering(addr)
	return t.debug, e, ok
}

func (f *frames) covering(addr uint64) (fde, bool) {
	if f == nil {
		return fde{}, false
	}
	off, ok := f.find(addr)
	if !ok {
		return fde{}, false
	}
	e, isCIE, _, err := f.fdeAt(off)
	if err != nil || isCIE || addr < e.start || addr >= e.end {
		return fde{}, false
	}
	return e, true
}
