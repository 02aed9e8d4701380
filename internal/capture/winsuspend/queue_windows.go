package winsuspend

import (
	"math/bits"
	"sync"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/winsys"
)

// queue holds what was sampled until it is handed over.
type queue struct {
	mu      sync.Mutex
	samples []*sample
	notices []capture.ProcessEvent
	slowed  []capture.Slowed
	held    int // bytes of stacks in samples
	spare   [32][][]byte
	spared  int // bytes in spare
}

const (
	// mostHeld bounds the copies of stacks that wait to be handed over, in bytes.
	mostHeld = 128 << 20
	// mostSpare bounds buffers that are kept to be used again.
	mostSpare = 16 << 20
)

// buffer returns an empty buffer with room for n bytes.
func (q *queue) buffer(n int) []byte {
	class := bits.Len(uint(max(n, 1024) - 1))
	q.mu.Lock()
	defer q.mu.Unlock()
	if class < len(q.spare) {
		if list := q.spare[class]; len(list) > 0 {
			b := list[len(list)-1]
			q.spare[class] = list[:len(list)-1]
			q.spared -= cap(b)
			return b[:0]
		}
	}
	return make([]byte, 0, 1<<class)
}

// free takes a sample's buffer back.
func (q *queue) free(s *sample) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release(s)
}

func (q *queue) release(s *sample) {
	b := s.snap.Stack
	s.snap.Stack, s.snap.Other = nil, nil // parts of one buffer
	if cap(b) == 0 || q.spared+cap(b) > mostSpare {
		return
	}
	if class := bits.Len(uint(cap(b) - 1)); class < len(q.spare) && cap(b) == 1<<class {
		q.spare[class] = append(q.spare[class], b)
		q.spared += cap(b)
	}
}

// put hands over the samples that have a weight. If the queue is full they are lost.
func (q *queue) put(s *sampler) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, sm := range s.ready {
		size := len(sm.snap.Stack) + len(sm.snap.Other)
		if q.held+size > mostHeld {
			s.e.lost.Add(1)
			q.release(sm)
			continue
		}
		q.held += size
		q.samples = append(q.samples, sm)
	}
	clear(s.ready)
	s.ready = s.ready[:0]
}

func (q *queue) notice(n capture.ProcessEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.notices = append(q.notices, n)
}

func (q *queue) slow(s capture.Slowed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.slowed = append(q.slowed, s)
}

// take empties the queue.
func (q *queue) take() (samples []*sample, notices []capture.ProcessEvent, slowed []capture.Slowed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	samples, notices, slowed = q.samples, q.notices, q.slowed
	q.samples, q.notices, q.slowed, q.held = nil, nil, nil, 0
	return samples, notices, slowed
}

// deliver hands everything to the sink: samples first, because a process's end is noticed after its
// last sample, but what was started before any sample of it.
func (e *Engine) deliver(sink capture.Sink) {
	samples, notices, slowed := e.s.queue.take()
	for _, n := range notices {
		if n.Kind == capture.Fork {
			sink.Notice(n)
		}
	}
	e.loads.deliver(sink)
	again, _ := sink.(capture.SleepSink)
	for i, s := range samples {
		if due := e.due.Load(); due != 0 && winsys.Clock() > due {
			e.unread += uint64(len(samples) - i)
			e.lost.Add(uint64(len(samples) - i))
			break
		}
		if s.again {
			taken, want := false, true
			if again != nil {
				taken, want = again.Again(&s.snap)
			}
			if !taken {
				s.th.lost.Add(s.snap.Weight)
			} else {
				e.samples.Add(1)
			}
			if want || !taken {
				s.th.full.Store(true)
			}
			continue
		}
		e.samples.Add(1)
		e.bytes.Add(uint64(len(s.snap.Stack) + len(s.snap.Other)))
		sink.Sample(&s.snap)
		e.s.queue.free(s)
	}
	for _, n := range notices {
		if n.Kind != capture.Fork {
			sink.Notice(n)
		}
	}
	if pacer, ok := sink.(capture.Pacer); ok {
		for _, s := range slowed {
			pacer.Slowed(s)
		}
	}
	sink.BatchEnd()
}
