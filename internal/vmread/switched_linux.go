package vmread

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// switched is a coroutine that makes the calls of callers that are not locked to their threads. The
// caller switches to it, and it switches back when the call has returned. This is as cheap as a few
// function calls: Go's scheduler has no part in it, where handing a call over to a goroutine wakes
// other threads up to three times.
//
// Nothing else can run on the stack of a call that does not return. If it is given up, another
// goroutine takes the coroutine's place and switches back to the caller in its stead. See
// runtime/coro.go in Go's sources: any goroutine may do that, and it then waits where the coroutine
// would have waited.
type switched struct {
	call  func() (struct{}, bool)
	stop  func()
	yield atomic.Pointer[func(struct{}) bool] // switches back to the caller
	made  atomic.Uint64                       // the number of the last call that it made: others are handed over
	over  chan struct{}                       // closed when the caller goes on without the call
	last  look                                // belongs to the watch
}

// switchTo makes the call with a number on the helper's coroutine; ErrGivenUp if it does not return.
func (h *helper) switchTo(number uint64) error {
	s := h.switched
	if s == nil {
		s = &switched{over: make(chan struct{})}
		s.call, s.stop = iter.Pull(func(yield func(struct{}) bool) { s.serve(h, yield) })
		h.switched = s
		watching.add(h)
	}
	s.made.Store(number)
	watching.begin()
	s.call()
	if h.state.Load() != number<<stateBits|givenUp {
		return nil
	}
	close(s.over)
	h.handed.end()
	return ErrGivenUp
}

// serve makes calls until the helper is not used any more or one of them is given up. It runs on the
// coroutine.
func (s *switched) serve(h *helper, yield func(struct{}) bool) {
	s.yield.Store(&yield)
	for {
		if !h.read(h.state.Load() >> stateBits) {
			// Returning switches to the goroutine that took this one's place. It is there as soon as
			// the caller goes on.
			<-s.over
			return
		}
		if !yield(struct{}{}) {
			return
		}
	}
}

// end ends the coroutine of a helper that is not used any more. s may be nil.
func (s *switched) end() {
	if s != nil {
		watching.remove(s)
		go s.stop() // the caller may be locked to its thread
	}
}

// watch gives up the calls of coroutines that do not return. Its goroutine runs only while there are
// calls now and then: each time that it wakes, Go's scheduler is busy for a while.
type watch struct {
	on   atomic.Bool
	mu   sync.Mutex
	list []*helper // that have coroutines
}

var watching watch

const (
	// watchEvery is the time between two rounds, and hastyFor for how many rounds it is only a tick
	// after a recording has ended.
	watchEvery = patience / 2
	hastyFor   = 50
)

func (w *watch) add(h *helper) {
	w.mu.Lock()
	w.list = append(w.list, h)
	w.mu.Unlock()
}

func (w *watch) remove(s *switched) {
	w.mu.Lock()
	w.list = slices.DeleteFunc(w.list, func(h *helper) bool { return h.switched == s })
	w.mu.Unlock()
}

// begin makes sure that a call that is about to begin is watched.
func (w *watch) begin() {
	if !w.on.Load() && w.on.CompareAndSwap(false, true) {
		go w.run()
	}
}

func (w *watch) run() {
	next := time.NewTimer(watchEvery)
	defer next.Stop()
	for hasty := 0; ; {
		select {
		case <-ending:
			hasty = hastyFor
		case <-next.C:
		}
		wait := watchEvery
		if hasty > 0 {
			hasty, wait = hasty-1, tick
		}
		next.Reset(wait)
		if w.round(time.Since(began)) {
			continue
		}
		// A call that begins now either finds that nobody watches, or is seen by this round.
		w.on.Store(false)
		if !w.round(time.Since(began)) || !w.on.CompareAndSwap(false, true) {
			return
		}
	}
}

// round looks at all calls, and reports whether there were any since the last round.
func (w *watch) round(now time.Duration) (any bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.list[:0]
	for _, h := range w.list {
		s := h.switched
		state, l := h.state.Load(), &s.last
		if number := s.made.Load(); l.number != number {
			*l, any = look{number: number, first: now}, true
		} else if state == number<<stateBits|busy {
			any = true
			if l.tooLong(h, now) && h.giveUp(number) {
				go (*s.yield.Load())(struct{}{})
				continue
			}
		}
		left = append(left, h)
	}
	clear(w.list[len(left):])
	w.list = left
	return any
}
