package suspend

import (
	"sync"

	"github.com/candid-profiler/candid/internal/capture"
)

// sample is a Snapshot before it is handed over.
type sample struct {
	th       *thread
	time     int64
	weight   uint64
	ready    uint64 // ns that the thread waited for a CPU, for wall time
	stood    uint64 // ns that the thread was stopped by candid, for wall time
	cpu      int
	regs     words
	asleep   bool   // only the stack pointer and the program counter are known
	at       uint64 // address of the copy
	off, len int    // where the copy is in the arena
	top      uint64
	flags    capture.Flags
	regions  []capture.Region // memory in which the stack continues

	// Fields of a sample of a sleeping thread.
	sleeper *sleeper
	sleep   uint64
	again   bool // without a stack: the same sleep as before
	state   capture.State
	call    uint32 // capture.Snapshot.Syscall
}

// buffer holds the samples of one thread of candid's until they are read.
type buffer struct {
	mu      sync.Mutex // guards what follows, except what belongs to the reader
	samples []sample
	arena   []byte // stacks of samples
	used    int
	spare   []byte   // the other arena, which belongs to the reader
	ready   []sample // belongs to the reader
}

// makeBuffer returns a buffer with room for size bytes of stacks.
func makeBuffer(size int) buffer {
	return buffer{samples: make([]sample, 0, max(256, size/8192)), arena: make([]byte, size), spare: make([]byte, size)}
}

// next returns room for one more sample; nil if there is none. The caller holds b.mu.
func (b *buffer) next() *sample {
	if len(b.samples) == cap(b.samples) {
		return nil
	}
	b.samples = b.samples[:len(b.samples)+1]
	return &b.samples[len(b.samples)-1]
}

// drop removes the last sample.
func (b *buffer) drop() { b.samples = b.samples[:len(b.samples)-1] }

// keep keeps the last sample, and reports whether the buffer is more than half full.
func (b *buffer) keep(s *sample) bool {
	b.used += (s.len + 7) &^ 7
	return b.used > len(b.arena)/2 || len(b.samples) > cap(b.samples)/2
}

// take returns what there is to the reader: the samples, whose stacks are in b.spare until the next
// call. The caller holds b.mu.
func (b *buffer) take() []sample {
	// The samples are copied under the lock; the stacks stay where they are, in the arena that now
	// belongs to the reader.
	b.ready = append(b.ready[:0], b.samples...)
	b.arena, b.spare = b.spare, b.arena
	b.samples, b.used = b.samples[:0], 0
	return b.ready
}
