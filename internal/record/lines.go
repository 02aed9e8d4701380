package record

import "sync"

// lines prints messages during a recording, from any goroutine. While a launched program has the
// terminal they are held back: the program's own output is there, and it may draw on it.
type lines struct {
	mu    sync.Mutex
	log   func(string)
	holds bool
	kept  []string
}

func (l *lines) say(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds {
		l.kept = append(l.kept, line)
		return
	}
	l.log(line)
}

func (l *lines) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = true
}

// release prints what was held back.
func (l *lines) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = false
	for _, line := range l.kept {
		l.log(line)
	}
	l.kept = nil
}
