package bpfcopy

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

const (
	// maxHeld is how many bytes of samples may wait to be walked. Samples beyond that are lost, and
	// counted.
	maxHeld = 48 << 20
	// maxNotes is how many notices may wait.
	maxNotes = 1 << 18
	// chunkSize is the size in bytes of the chunks that records are copied into; a larger record
	// gets a chunk of its own.
	chunkSize = 1 << 20
	// maxSpare is how many free chunks are kept for the next batch.
	maxSpare = 3
	// groupBytes is how many bytes are walked in one go at most. Data read from a target's memory
	// is trusted until the end of the group.
	groupBytes = 4 << 20
)

// backlog holds copies of records from when they are taken out of the rings until they are walked.
// One goroutine puts records in, another takes them out; neither waits for the other. The copies
// are in separately mapped memory, which is not part of core dumps, and is unmapped when it is not
// used.
type backlog struct {
	mu      sync.Mutex
	batches []*batch // the oldest first
	held    int      // bytes of the batches' chunks
	notes   int      // records without a sample
	limit   int
	spare   [][]byte
	gone    []int // processes whose end the kernel reported

	ready chan struct{} // something was put in
}

// batch holds the records that were taken out of the rings in one go, in time order.
type batch struct {
	items  []item
	maps   []capture.ProcessEvent // that items refer to
	chunks [][]byte
	left   []byte // of the last chunk
	held   int
	notes  int
}

func newBacklog(limit int) *backlog {
	return &backlog{limit: limit, ready: make(chan struct{}, 1)}
}

// copy keeps a copy of a record for the batch b, which is not in the backlog yet. It returns nil if
// there is no room. Notices are limited separately.
func (l *backlog) copy(b *batch, record []byte, sample bool) []byte {
	if len(record) > len(b.left) && !l.room(b, len(record), sample) {
		return nil
	}
	if !sample {
		if l.notes+b.notes >= maxNotes {
			return nil
		}
		b.notes++
	}
	n := copy(b.left, record)
	kept := b.left[:n:n]
	b.left = b.left[(n+7)&^7:]
	return kept
}

// room adds a chunk with room for n bytes to the batch; false if the limit is reached or memory
// cannot be mapped.
func (l *backlog) room(b *batch, n int, sample bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := chunkSize
	for size < n+8 {
		size *= 2
	}
	if sample && l.held+b.held+size > l.limit {
		return false
	}
	var c []byte
	if k := len(l.spare); k > 0 && size == chunkSize {
		c, l.spare = l.spare[k-1], l.spare[:k-1]
	} else {
		var err error
		if c, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
			return false
		}
		_ = unix.Madvise(c, unix.MADV_DONTDUMP)
	}
	b.chunks, b.left, b.held = append(b.chunks, c), c, b.held+size
	return true
}

// open returns a batch to add to: the last one, if nobody has taken it and it has room, so that
// frequent collecting takes no more memory than rare collecting.
func (l *backlog) open() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.batches)
	if n == 0 || l.batches[n-1].held > chunkSize {
		return &batch{}
	}
	b := l.batches[n-1]
	l.batches[n-1], l.batches = nil, l.batches[:n-1]
	l.held -= b.held
	l.notes -= b.notes
	return b
}

// put adds the batch to the backlog.
func (l *backlog) put(b *batch) {
	if len(b.items) == 0 {
		l.free(b, false)
		return
	}
	l.mu.Lock()
	l.batches = append(l.batches, b)
	l.held += b.held
	l.notes += b.notes
	l.mu.Unlock()
}

// wake wakes the taker: there may be something, or it is time to look at other things.
func (l *backlog) wake() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// take returns the first batches, as many as are walked in one go; none if there are none. They
// stay in the count until free.
func (l *backlog) take() []*batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, sum := 0, 0
	for n < len(l.batches) && (n == 0 || sum+l.batches[n].held <= groupBytes) {
		sum += l.batches[n].held
		n++
	}
	group := append([]*batch(nil), l.batches[:n]...)
	rest := copy(l.batches, l.batches[n:])
	clear(l.batches[rest:])
	l.batches = l.batches[:rest]
	return group
}

// free releases the memory of a batch that take returned or, if taken is false, that was never put
// in.
func (l *backlog) free(b *batch, taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if taken {
		l.held -= b.held
		l.notes -= b.notes
	}
	for _, c := range b.chunks {
		if len(c) == chunkSize && len(l.spare) < maxSpare {
			l.spare = append(l.spare, c)
		} else {
			_ = unix.Munmap(c)
		}
	}
	*b = batch{}
}

// waiting returns how many bytes of samples have not been walked yet.
func (l *backlog) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// ended notes processes that have ended; takeEnded returns them, once.
func (l *backlog) ended(pids []int) {
	if len(pids) == 0 {
		return
	}
	l.mu.Lock()
	l.gone = append(l.gone, pids...)
	l.mu.Unlock()
}

func (l *backlog) takeEnded() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := l.gone
	l.gone = nil
	return gone
}

// close unmaps all memory. Nobody may use the backlog afterwards.
func (l *backlog) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.batches {
		for _, c := range b.chunks {
			_ = unix.Munmap(c)
		}
	}
	for _, c := range l.spare {
		_ = unix.Munmap(c)
	}
	l.batches, l.spare = nil, nil
}
