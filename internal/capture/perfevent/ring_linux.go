package perfevent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// Ring is an event's mapped ring buffer. It is read in two steps: Next iterates over the records
// that the kernel has finished, Release frees their room.
type Ring struct {
	memory []byte
	meta   *unix.PerfEventMmapPage
	data   []byte
	pos    uint64 // how far Next has read
	end    uint64 // how far the kernel had written at Begin
}

// MapRing maps an event's ring of at least size bytes, rounded up to a power of
// two of pages.
func MapRing(fd int, size int) (*Ring, error) {
	page := os.Getpagesize()
	n := page
	for n < size {
		n *= 2
	}
	memory, err := unix.Mmap(fd, 0, page+n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		if errors.Is(err, unix.EPERM) {
			return nil, fmt.Errorf("map a perf ring of %d KiB: %w: it is more than kernel.perf_event_mlock_kb and ulimit -l allow (raise one, or give candid CAP_IPC_LOCK): %w",
				n>>10, capture.ErrPermission, err)
		}
		return nil, fmt.Errorf("map a perf ring of %d KiB: %w", n>>10, err)
	}
	r := &Ring{memory: memory, meta: (*unix.PerfEventMmapPage)(unsafe.Pointer(&memory[0])), data: memory[page:]}
	r.pos = atomic.LoadUint64(&r.meta.Data_tail)
	return r, nil
}

// Close unmaps the ring.
func (r *Ring) Close() error {
	if r == nil || r.memory == nil {
		return nil
	}
	err := unix.Munmap(r.memory)
	r.memory, r.data, r.meta = nil, nil, nil
	return err
}

// Begin notes how far the kernel has written; Next stops there.
func (r *Ring) Begin() {
	r.end = atomic.LoadUint64(&r.meta.Data_head)
}

// Span is where a record lies: byte counts since the ring was made.
type Span struct {
	At   uint64
	Size uint16
}

// Next returns the next record, false when there is none before the end that Begin noted. A record
// that contradicts its own header ends the batch: everything up to the end is skipped at Release.
func (r *Ring) Next() (Span, bool) {
	if r.end-r.pos < headerSize || r.end-r.pos > uint64(len(r.data)) {
		r.pos = r.end
		return Span{}, false
	}
	// Records and sizes are multiples of 8, so a header never wraps.
	off := r.pos & uint64(len(r.data)-1)
	if off+headerSize > uint64(len(r.data)) {
		r.pos = r.end
		return Span{}, false
	}
	size := binary.LittleEndian.Uint16(r.data[off+6:])
	if size < headerSize || uint64(size) > r.end-r.pos {
		r.pos = r.end
		return Span{}, false
	}
	s := Span{At: r.pos, Size: size}
	r.pos += uint64(size)
	return s, true
}

// Back undoes the last Next, so that Next returns the same record again.
func (r *Ring) Back(s Span) { r.pos = s.At }

// Bytes returns a record's bytes, in place, or in scratch if the record crosses the ring's end.
func (r *Ring) Bytes(s Span, scratch *[1 << 16]byte) []byte {
	off := s.At & uint64(len(r.data)-1)
	if off+uint64(s.Size) <= uint64(len(r.data)) {
		return r.data[off : off+uint64(s.Size)]
	}
	n := copy(scratch[:], r.data[off:])
	copy(scratch[n:s.Size], r.data)
	return scratch[:s.Size]
}

// word reads the 8 bytes at a record's offset, which is a multiple of 8.
func (r *Ring) word(s Span, at uint64) uint64 {
	off := (s.At + at) & uint64(len(r.data)-1)
	if at+8 > uint64(s.Size) || off+8 > uint64(len(r.data)) {
		return 0
	}
	return binary.LittleEndian.Uint64(r.data[off:])
}

// Time returns a record's time without parsing the rest.
func (r *Ring) Time(s Span) uint64 {
	if uint32(r.word(s, 0)) == RecordSample {
		return r.word(s, headerSize+8)
	}
	return r.word(s, uint64(s.Size)-trailerSize+8)
}

// Release frees the room of everything that Next has returned.
func (r *Ring) Release() {
	atomic.StoreUint64(&r.meta.Data_tail, r.pos)
}
