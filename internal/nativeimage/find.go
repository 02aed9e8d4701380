package nativeimage

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
)

// image is what is read of one program: it is the same for all processes that run it.
type image struct {
	code  span // addresses of the file
	table codeTable
	frames
	heap    heap
	version string // "GraalVM CE 25.0.2+10.1"; "" if it does not say
}

// candidate is a place that may be in ImageCodeInfo: where the code begins and how long it is. Three
// numbers follow (CodeInfoImpl: the offset and size of data behind the code, and the size of both),
// which in a program's file are the code's size, 0, and the code's size again. No other object has
// looked like that.
type candidate struct{ at, start, size uint64 }

// scanBlock is how much is searched at a time, bytes.
const scanBlock = 1 << 20

const maxCandidates = 64

// scan searches the image heap for candidates, on all CPUs.
func scan(s source, heap, text span) []candidate {
	var (
		mu   sync.Mutex
		all  []candidate
		wait sync.WaitGroup
		next = make(chan uint64)
	)
	for range max(1, min(runtime.GOMAXPROCS(0), 4)) {
		wait.Go(func() {
			buf := make([]byte, scanBlock+40)
			for at := range next {
				n := min(uint64(len(buf)), heap.end-at) &^ 7
				if n < 40 || !s.bytes(buf[:n], at) {
					continue
				}
				for _, c := range scanBytes(buf[:n], at, text) {
					mu.Lock()
					if len(all) < maxCandidates {
						all = append(all, c)
					}
					mu.Unlock()
				}
			}
		})
	}
	for at := (heap.start + 7) &^ 7; at < heap.end; at += scanBlock {
		next <- at
	}
	close(next)
	wait.Wait()
	slices.SortFunc(all, func(a, b candidate) int { return int(int64(a.at - b.at)) })
	return all
}

// scanBytes searches one block, which begins at addr.
func scanBytes(b []byte, addr uint64, text span) []candidate {
	var out []candidate
	for i := 0; i+40 <= len(b); i += 8 {
		size := binary.LittleEndian.Uint64(b[i+8:])
		if size == 0 || size != binary.LittleEndian.Uint64(b[i+16:]) || size != binary.LittleEndian.Uint64(b[i+32:]) || binary.LittleEndian.Uint64(b[i+24:]) != 0 {
			continue
		}
		start := binary.LittleEndian.Uint64(b[i:])
		if text.has(start) && start&15 == 0 && size <= text.end-start {
			out = append(out, candidate{addr + uint64(i), start, size})
		}
	}
	return out
}

// The references of ImageCodeInfo in their order. Until GraalVM 22 the class and the name of a
// method are in the frame info itself, and there is no table of methods.
const (
	refFields = iota // the objects that the others are, for the collector
	refIndex
	refEncodings
	refMaps
	refFrames
	refConstants
	refClasses
	refNames
	refOthers
	refMethods
	numRefs
)

// maxLead bounds how far before the image heap the base of references may lie, in bytes.
const maxLead = 64 << 20

// find finds the tables of a program and proves them.
func find(s source, heapAt, text span) (*image, bool) {
	for _, c := range scan(s, heapAt, text) {
		for _, wide := range []bool{true, false} {
			if im, ok := prove(s, heapAt, c, wide); ok {
				return im, true
			}
		}
	}
	return nil, false
}

// prove reads what a candidate leads to, and checks that it is a table of the code.
func prove(s source, heapAt span, c candidate, wide bool) (*image, bool) {
	h := heap{source: s, span: heapAt, wide: wide, shift: 3, length: 12}
	if !wide {
		h.length = 4
	}
	var refs [numRefs]uint64
	for i := range refs {
		v, ok := number(s, c.at+5*8+uint64(i)*h.refSize(), int(h.refSize()))
		if !ok {
			return nil, false
		}
		refs[i] = v
	}
	for _, piece := range []uint64{256, 128, 512, 64, 1024} {
		want := (c.size + piece - 1) / piece * 4
		if h.findBase(refs[refIndex], want) {
			if im, ok := h.read(c, refs, piece); ok {
				return im, true
			}
		}
	}
	return nil, false
}

// findBase finds the base of references, for which the reference to the index leads to an array of
// want bytes. It lies before the image heap by a whole number of pages.
func (h *heap) findBase(ref, want uint64) bool {
	offset := ref
	if !h.wide {
		offset <<= h.shift
	}
	const page = 4096
	for lead := uint64(0); lead <= min(maxLead, offset); lead += page {
		at := h.span.start + offset - lead
		if h.span.has(at) && h.span.has(at+h.length+4) {
			if n, ok := number(h, at+h.length, 4); ok && n == want {
				h.base = h.span.start - lead
				return true
			}
		}
	}
	return false
}

// read reads the tables.
func (h *heap) read(c candidate, refs [numRefs]uint64, piece uint64) (*image, bool) {
	var at [numRefs]uint64
	for i := range refs {
		at[i], _ = h.deref(refs[i])
	}
	im := &image{code: span{c.start, c.start + c.size}, table: codeTable{size: c.size, piece: piece}}
	var ok1, ok2, ok3 bool
	if h.bytesHub, ok1 = h.hub(at[refIndex]); !ok1 || at[refEncodings] == 0 {
		return nil, false
	}
	for _, i := range []int{refEncodings, refFrames} {
		if hub, ok := h.hub(at[i]); at[i] != 0 && (!ok || hub != h.bytesHub) {
			return nil, false
		}
	}
	im.table.index, ok1 = h.byteArray(at[refIndex])
	im.table.encodings, ok2 = h.byteArray(at[refEncodings])
	if !ok1 || !ok2 || !im.table.prove() {
		return nil, false
	}
	if at[refFrames] != 0 {
		if im.frames.info, ok3 = h.byteArray(at[refFrames]); ok3 {
			im.frames.learn(h, &im.table, at)
		}
	}
	im.heap = *h
	return im, true
}
