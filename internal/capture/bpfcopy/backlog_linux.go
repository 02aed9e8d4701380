package bpfcopy

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

const (
	// maxHeld is how many bytes of samples may wait for being walked. What comes on top of
	// that is lost, and counted.
	maxHeld = 48 << 20
	// maxNotes is how many notices may wait.
	maxNotes = 1 << 18
	// chunkSize is what records are copied into; a larger one gets a chunk of its own.
	chunkSize = 1 << 20
	// maxSpare is how many chunks are kept for the next batch.
	maxSpare = 3
	// groupBytes is how much is walked in one go at most. What was read from a target's
	// memory is trusted until then.
	groupBytes = 4 << 20
)

// backlog keeps copies of records from when they are taken out of the rings until they
// are walked. One goroutine puts in, another takes out; neither waits for the other. The
// copies are in memory of their own, which is not part of core dumps, and is given back
// when it is not used.
type backlog struct {
	mu      sync.Mutex
	batches []*batch // the first first
	held    int      // bytes that the batches' chunks have
	notes   int      // records without a sample
	limit   int
	spare   [][]byte
	gone    []int // processes that the kernel said have ended

	ready chan struct{} // something was put in
}

// batch is what was taken out of the rings in one go, in the order of time.
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

// copy keeps a copy of a record for the batch b, which is not in the backlog yet. It is
// nil where there is no room. Notices have room of their own.
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

// room gives the batch a chunk with room for n bytes.
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

// open gives a batch to put more into: the last one, if nobody has taken it and it has
// room, so that what is collected often takes no more memory than what is collected
// rarely.
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

// put takes the batch in.
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

// wake tells the one who takes out that there may be something, or that it is time to
// look at other things.
func (l *backlog) wake() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// take gives the first batches, as many as are walked in one go; none if there are none.
// They stay in the count until free.
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

// free gives the memory of a batch back, which take gave or, if not taken, was never put in.
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

// waiting is how many bytes of samples have not been walked.
func (l *backlog) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// ended notes processes that have ended; takeEnded gives them, once.
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

// close gives all memory back. Nobody may use the backlog any more.
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
