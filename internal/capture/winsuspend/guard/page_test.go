package guard

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// fake is a thread with a suspend count, which the system never takes below 0.
type fake struct {
	mu sync.Mutex
	n  uint32
}

func (f *fake) suspend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
}

func (f *fake) resume() (was uint32, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was = f.n; f.n > 0 {
		f.n--
	}
	return was, true
}

func (f *fake) count() (n uint32, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n, true
}

func (f *fake) close() {}

// candid stops a thread as the assembly does. late is called between its steps.
func candid(p *Page, th *fake, before uint32, late func()) (void bool) {
	swap := func(s, from, to uint64) bool { return atomic.CompareAndSwapUint64(&p.State, s|from, s|to) }
	s := p.Name(1, 2, 3, before)
	stop := Stop{State: s, Suspended: true, Suspend: th.suspend, Gone: func() bool { return false }}
	stop.Resume = func() uint32 {
		was, _ := th.resume()
		return was
	}
	late()
	atomic.StoreUint64(&p.State, s|Suspending)
	th.suspend()
	late()
	if swap(s, Suspending, Suspended) {
		late()
		if swap(s, Suspended, Resuming) {
			late()
			stop.Was = stop.Resume()
			late()
			if swap(s, Resuming, Free) {
				return false
			}
			stop.Resumed = true
		}
	}
	return p.Contested(stop) != 0
}

// Whatever the guard does at which moment, a thread is afterwards suspended as often as before.
func TestEachStopIsUndoneOnce(t *testing.T) {
	for _, before := range []uint32{0, 1} {
		p, th := new(Page), &fake{n: before}
		var end atomic.Bool
		var looks atomic.Uint64
		var guard sync.WaitGroup
		guard.Go(func() {
			for w := (patrol{}); !end.Load(); {
				w.look(p, func() victim { return th }, func() uint64 { return 1 })
				looks.Add(1)
				runtime.Gosched()
			}
		})
		void := 0
		for range 20_000 {
			// Now and then candid gets no CPU for some looks of the guard's.
			if candid(p, th, before, func() {
				if rand.IntN(4) == 0 {
					for until := looks.Load() + rand.Uint64N(4); looks.Load() < until; {
						runtime.Gosched()
					}
				}
			}) {
				void++
			}
			if n, _ := th.count(); n != before {
				t.Fatalf("the thread was suspended %d times before, %d times now", before, n)
			}
			if s := atomic.LoadUint64(&p.State); phase(s) != Free {
				t.Fatalf("a stop has ended in phase %d", phase(s))
			}
		}
		end.Store(true)
		guard.Wait()
		if void == 0 {
			t.Errorf("suspended %d times before: the guard never came between", before)
		}
	}
}

// A stop that lasts is ended at the guard's second look if the thread is suspended for sure, at its
// third if that is in doubt, and not before.
func TestLook(t *testing.T) {
	for _, c := range []struct {
		phase         uint64
		before, count uint32
		at            int // the look at which the thread is let go of, 0: never
	}{
		{Free, 0, 0, 0}, {Suspended, 0, 1, 2}, {Suspended, 1, 2, 2}, {Suspending, 0, 0, 0}, {Suspending, 0, 1, 3},
		{Suspending, 1, 2, 0}, {Suspending, 0, 2, 0}, {Resuming, 0, 1, 3}, {Resuming, 0, 0, 0}, {Resuming, 1, 1, 0},
	} {
		p, th := new(Page), &fake{n: c.count}
		p.State = p.Name(1, 2, 3, c.before) | c.phase
		at := 0
		for w, i := (patrol{}), 1; i <= 5 && at == 0; i++ {
			if w.look(p, func() victim { return th }, func() uint64 { return 77 }); phase(p.State) == LetGo {
				at = i
			}
		}
		if at != c.at {
			t.Errorf("%+v: let go at look %d", c, at)
		}
		if at != 0 && (th.n != c.count-1 || p.freed != 77) {
			t.Errorf("%+v: suspended %d times, time %d", c, th.n, p.freed)
		}
		if at == 0 && (th.n != c.count || phase(p.State) != c.phase) {
			t.Errorf("%+v: suspended %d times, phase %d", c, th.n, phase(p.State))
		}
	}
}

// A thread that ended, and a guard that ended while it looked, leave a stop to candid.
func TestContestedAlone(t *testing.T) {
	p, th := new(Page), &fake{}
	p.State = p.Name(1, 2, 3, 0) | Suspended
	for w, i := (patrol{}), 0; i < 3; i++ {
		w.look(p, func() victim { return nil }, func() uint64 { return 1 })
	}
	if phase(p.State) != Suspended {
		t.Errorf("a thread that has ended: phase %d", phase(p.State))
	}
	for _, n := range []uint32{0, 1} { // what the guard has left
		th.n = n
		s := p.Name(1, 2, 3, 0)
		p.State = s | Looking
		resume := func() uint32 { was, _ := th.resume(); return was }
		count := func() uint32 { n, _ := th.count(); return n }
		if p.Contested(Stop{State: s, Suspended: true, Suspend: th.suspend, Resume: resume, Count: count, Gone: func() bool { return true }}) != 0 {
			t.Error("a guard that has ended has let go")
		}
		if th.n != 0 || p.State != s {
			t.Errorf("the guard left it suspended %d times: suspended %d times, phase %d", n, th.n, phase(p.State))
		}
	}
}
