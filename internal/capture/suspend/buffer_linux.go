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
	ready    uint64 // ns that the thread waited for a CPU, of wall time
	stood    uint64 // ns that it stood still for candid, of wall time
	cpu      int
	regs     words
	asleep   bool   // only the stack pointer and the program counter are known
	at       uint64 // address of the copy
	off, len int    // of the copy in the arena
	top      uint64
	flags    capture.Flags
	regions  []capture.Region // what the stack goes on in

	// Of a thread that sleeps.
	sleeper *sleeper
	sleep   uint64
	again   bool // no stack: it is the same sleep's as before
	state   capture.State
	call    uint32 // capture.Snapshot.Syscall
}

// buffer is where one thread of candid's leaves samples for their reader.
type buffer struct {
	mu      sync.Mutex // of what follows, except what is the reader's
	samples []sample
	arena   []byte // the stacks of samples
	used    int
	spare   []byte   // the other arena, of the reader
	ready   []sample // of the reader
}

// makeBuffer makes one with room for size bytes of stack.
func makeBuffer(size int) buffer {
	return buffer{samples: make([]sample, 0, max(256, size/8192)), arena: make([]byte, size), spare: make([]byte, size)}
}

// next makes room for one more sample; nil if there is none. The caller holds b.mu.
func (b *buffer) next() *sample {
	if len(b.samples) == cap(b.samples) {
		return nil
	}
	b.samples = b.samples[:len(b.samples)+1]
	return &b.samples[len(b.samples)-1]
}

// drop takes the last sample back.
func (b *buffer) drop() { b.samples = b.samples[:len(b.samples)-1] }

// keep keeps the last sample, and reports whether the buffer is half full.
func (b *buffer) keep(s *sample) bool {
	b.used += (s.len + 7) &^ 7
	return b.used > len(b.arena)/2 || len(b.samples) > cap(b.samples)/2
}

// take gives what there is to the reader: the samples, whose stacks are in b.spare
// until the next call. The caller holds b.mu.
func (b *buffer) take() []sample {
	// The samples are taken away under the lock; the stacks stay where they are, in
	// the arena that is left now.
	b.ready = append(b.ready[:0], b.samples...)
	b.arena, b.spare = b.spare, b.arena
	b.samples, b.used = b.samples[:0], 0
	return b.ready
}
