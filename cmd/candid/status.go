package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// status is the progress line on a terminal. With a launched program there is none: it has the same
// terminal, and may draw on it.
type status struct {
	w     io.Writer
	mu    sync.Mutex
	shown bool
}

func newStatus(quiet bool) *status {
	if quiet || !isTerminal(os.Stderr) {
		return &status{}
	}
	return &status{w: os.Stderr}
}

func (s *status) update(samples uint64, elapsed time.Duration) {
	if s.w == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = true
	fmt.Fprintf(s.w, "\r\x1b[Krecording %s, %d samples (Ctrl-C stops and saves)", elapsed.Truncate(100*time.Millisecond), samples)
}

func (s *status) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.shown = false
	}
}
