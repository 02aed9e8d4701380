package perfevent

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Targets are the processes that an engine samples, for as long as they live. It may be used from
// several goroutines, but Check from one only.
type Targets struct {
	all     bool // the whole machine
	mu      sync.Mutex
	live    map[uint32]bool
	dead    map[uint32]bool // subset of live: those that were gone at the last check
	checked time.Time
}

// NewTargets returns Targets without any process, or for the whole machine.
func NewTargets(all bool) *Targets { return &Targets{all: all, live: map[uint32]bool{}} }

// Add makes a process a target.
func (t *Targets) Add(pid uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live[pid] = true
}

// Forget removes a process from the targets.
func (t *Targets) Forget(pid uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.live, pid)
}

// Has reports whether a process is a target; with the whole machine every process is.
func (t *Targets) Has(pid uint32) bool {
	if t.all {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live[pid]
}

// Left returns how many targets live; with the whole machine it is always one.
func (t *Targets) Left() int {
	if t.all {
		return 1
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.live)
}

// Check removes targets whose end was missed, if it is time to look, and calls gone for each.
func (t *Targets) Check(gone func(pid uint32)) {
	now := time.Now()
	if t.checked.IsZero() {
		t.checked = now
	}
	if since := now.Sub(t.checked); since <= time.Second && (len(t.dead) == 0 || since <= 100*time.Millisecond) {
		return
	}
	t.checked = now
	t.mu.Lock()
	defer t.mu.Unlock()
	dead := map[uint32]bool{}
	for pid := range t.live {
		if !errors.Is(unix.Kill(int(pid), 0), unix.ESRCH) {
			continue
		}
		// Its last records may still be in the rings: wait until they have been read.
		if !t.dead[pid] {
			dead[pid] = true
			continue
		}
		delete(t.live, pid)
		gone(pid)
	}
	t.dead = dead
}
