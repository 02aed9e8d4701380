package bpfcopy

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bits of a record's length (linux/bpf.h).
const (
	ringBusy    = 1 << 31
	ringDiscard = 1 << 30
)

// ringHeader is the size of the header before every record: its length and where it lies.
const ringHeader = 8

// ring reads a BPF ring buffer in place: next iterates over the finished records, release frees
// their room. The kernel offers the data mapped twice in a row, so that no record is ever split,
// but each mapped page counts as candid's memory: here the data is mapped once, and a record that
// crosses the end is copied together.
type ring struct {
	consumer []byte // one page, written by candid
	producer []byte // one page, then the data
	data     []byte
	size     uint64
	pos, end uint64
	split    []byte // the record that crossed the end: at most one in a pass
	held     uint64 // data from here on is still in use, if holds
	holds    bool
	filled   bool // more than half of the ring was in use since this was last cleared
}

// mapRing maps a ring buffer map of size bytes.
func mapRing(fd int, size int) (*ring, error) {
	page := os.Getpagesize()
	consumer, err := unix.Mmap(fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the BPF ring buffer: %w", err)
	}
	producer, err := unix.Mmap(fd, int64(page), page+size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Munmap(consumer)
		return nil, fmt.Errorf("map the BPF ring buffer's %d KiB: %w", size>>10, err)
	}
	return &ring{consumer: consumer, producer: producer, data: producer[page:], size: uint64(size)}, nil
}

func (r *ring) close() {
	if r == nil || r.consumer == nil {
		return
	}
	_ = unix.Munmap(r.consumer)
	_ = unix.Munmap(r.producer)
	r.consumer, r.producer, r.data, r.split = nil, nil, nil, nil
}

// begin notes how far the kernel has written, at most half a ring at a time, so that room is freed
// soon enough.
func (r *ring) begin() {
	r.end = min(atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.producer[0]))), r.pos+r.size/2)
}

// next returns the next finished record; nil at the end, or if a record is still being written.
func (r *ring) next() []byte {
	for r.pos < r.end {
		off := r.pos & (r.size - 1)
		length := atomic.LoadUint32((*uint32)(unsafe.Pointer(&r.data[off])))
		if length&ringBusy != 0 {
			return nil
		}
		n := uint64(length &^ (ringBusy | ringDiscard))
		if n > r.size-ringHeader {
			// This is not a record; nothing behind it can be found.
			r.pos = r.end
			return nil
		}
		r.pos += (n + ringHeader + 7) &^ 7
		if length&ringDiscard != 0 {
			continue
		}
		off += ringHeader // headers are never split: all lengths are multiples of 8
		if off+n <= r.size {
			return r.data[off : off+n]
		}
		tail := r.data[min(off, r.size):]
		r.split = append(append(r.split[:0], tail...), r.data[:n-uint64(len(tail))]...)
		return r.split
	}
	return nil
}

// release frees the room of everything that next has returned, except for what is held.
func (r *ring) release() {
	freed := (*uint64)(unsafe.Pointer(&r.consumer[0]))
	if atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.producer[0])))-atomic.LoadUint64(freed) > r.size/2 {
		r.filled = true
	}
	pos := r.pos
	if r.holds {
		pos = min(pos, r.held)
	}
	atomic.StoreUint64(freed, pos)
}

// hold keeps a record that next has returned since the ring was read up to from, and what comes
// behind it, from being overwritten until letGo.
func (r *ring) hold(from uint64, record []byte) {
	r.held, r.holds = from, true
	if len(record) == 0 {
		return
	}
	first, at := uintptr(unsafe.Pointer(&r.data[0])), uintptr(unsafe.Pointer(&record[0]))
	if off := uint64(at - first); at >= first && off < r.size {
		r.held += (off - ringHeader - from) & (r.size - 1)
		return
	}
	// It was copied together. The next pass must not do so in the same place.
	r.split = nil
}

// letGo ends hold.
func (r *ring) letGo() { r.holds = false }

// more reports whether the kernel has written beyond what next has returned.
func (r *ring) more() bool { return r.waiting() > 0 }

// waiting returns how many bytes the kernel has written beyond what next has returned.
func (r *ring) waiting() uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.producer[0]))) - r.pos
}

// watermark returns how many waiting bytes wake the reader of a ring of size bytes.
func watermark(size uint64) uint64 { return size / 8 * 3 }
