package winsuspend

import (
	"sync"
	"time"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/winsys"
)

// loads watches which processes load images, so that a runtime is found as soon as it is there: the
// system reports that to debuggers only. Looking at a process is one read of 16 bytes.
type loads struct {
	mu    sync.Mutex
	added []*loading
	news  []uint32 // processes that have loaded something
	said  chan struct{}
}

// loading is a process that is watched.
type loading struct {
	pid    uint32
	handle windows.Handle
	at     winsys.Loader
	since  time.Time
	next   time.Time
}

const (
	// loadsSoon is how often a process is looked at that was added lately.
	loadsSoon = 15 * time.Millisecond
	// loadsLater is the same for one that was added a while ago, by loadsYouth.
	loadsLater = 200 * time.Millisecond
	loadsYouth = 5 * time.Second
	// loadsShare is what looking may take of one CPU's time, as a divisor.
	loadsShare = 50
)

// add begins to watch a process.
func (l *loads) add(p *process) {
	w := &loading{pid: uint32(p.pid), since: time.Now()}
	me := windows.CurrentProcess()
	if windows.DuplicateHandle(me, p.handle, me, &w.handle, 0, false, windows.DUPLICATE_SAME_ACCESS) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.added = append(l.added, w)
}

// run watches until stop is closed.
func (l *loads) run(stop <-chan struct{}) {
	var all []*loading
	defer func() {
		for _, w := range all {
			windows.CloseHandle(w.handle)
		}
	}()
	pause := loadsSoon
	for {
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
		l.mu.Lock()
		all, l.added = append(all, l.added...), nil
		l.mu.Unlock()
		begin := time.Now()
		left := all[:0]
		for _, w := range all {
			if begin.Before(w.next) {
				left = append(left, w)
				continue
			}
			if ev, err := windows.WaitForSingleObject(w.handle, 0); err == nil && ev == windows.WAIT_OBJECT_0 {
				windows.CloseHandle(w.handle)
				continue
			}
			left = append(left, w)
			if w.next = begin.Add(loadsSoon); begin.Sub(w.since) > loadsYouth {
				w.next = begin.Add(loadsLater)
			}
			if w.at.Changed(w.handle) {
				l.tell(w.pid)
			}
		}
		clear(all[len(left):])
		all = left
		pause = max(loadsSoon, loadsShare*time.Since(begin))
	}
}

// tell says that a process has loaded something.
func (l *loads) tell(pid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.news = append(l.news, pid)
	select {
	case l.said <- struct{}{}:
	default:
	}
}

// deliver reports what was loaded since it was last called.
func (l *loads) deliver(sink capture.Sink) {
	l.mu.Lock()
	news := l.news
	l.news = nil
	l.mu.Unlock()
	now := winsys.Clock()
	for _, pid := range news {
		sink.Notice(capture.ProcessEvent{Kind: capture.Mmap, Time: now, PID: pid, TID: pid})
	}
}
