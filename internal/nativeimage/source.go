package nativeimage

import (
	"debug/elf"
	"encoding/binary"
	"io"

	"github.com/candid-profiler/candid/internal/objfile"
)

// source reads the initial content of a program's memory, by the addresses of its file.
type source interface {
	// bytes fills p from addr, or returns false.
	bytes(p []byte, addr uint64) bool
}

// span is a range of addresses.
type span struct{ start, end uint64 }

func (s span) has(addr uint64) bool { return addr-s.start < s.end-s.start && s.end > s.start }

// program is what is read of a file before its tables: where its code and its heap are.
type program struct {
	r     io.ReaderAt
	progs []objfile.Segment
	text  span // of the section of code
	heap  span // of the image heap
}

// The section of the image heap has had this name in all releases for Linux
// (com.oracle.objectfile.SectionName.SVM_HEAP).
const heapSection = ".svm_heap"

// maxHeap bounds the image heaps that are searched, in bytes.
const maxHeap = 4 << 30

// openProgram reads the headers of a file; false if it is not a native image whose sections are
// known.
func openProgram(r io.ReaderAt) (*program, bool) {
	f, err := objfile.Open(r)
	if err != nil || !f.Wide() || f.Machine != elf.EM_X86_64 || f.Order != binary.LittleEndian {
		return nil, false
	}
	heap, text := f.Section(heapSection), f.Section(".text")
	if heap == nil || text == nil || heap.Size < 64 || heap.Size > maxHeap || text.Size < 16 {
		return nil, false
	}
	p := &program{r: r, text: span{text.Addr, text.Addr + text.Size}, heap: span{heap.Addr, heap.Addr + heap.Size}}
	if p.text.end < p.text.start || p.heap.end < p.heap.start {
		return nil, false
	}
	for _, h := range f.Segments {
		if h.Type == elf.PT_LOAD {
			p.progs = append(p.progs, h)
		}
	}
	return p, true
}

// bytes implements source.
func (f *program) bytes(p []byte, addr uint64) bool {
	for i := range f.progs {
		h := &f.progs[i]
		if off := addr - h.Vaddr; off < h.Filesz && h.Filesz-off >= uint64(len(p)) && h.Off+off < 1<<62 {
			n, _ := f.r.ReadAt(p, int64(h.Off+off))
			return n == len(p)
		}
	}
	return false
}

// number reads a little-endian number of size bytes, at most 8.
func number(s source, addr uint64, size int) (uint64, bool) {
	var b [8]byte
	if !s.bytes(b[:size], addr) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}
