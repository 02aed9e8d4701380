package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// Options are the limits of a store. What is 0 or nil is not limited.
type Options struct {
	// Keep is how long days are kept after they ended.
	Keep time.Duration
	// Max is the most bytes that the store takes, up to a part of a day.
	Max int64
	// MinFree is how many bytes the disk has to have left, and MinFreePercent how much of its size,
	// 0 to 100. The larger one counts.
	MinFree        int64
	MinFreePercent float64
	// Log receives lines for people: what was deleted, cut off or could not be written.
	Log func(string)
}

// Writer appends profiles to a store. Its methods may be called from several goroutines.
type Writer struct {
	dir  string
	o    Options
	lock *lock

	mu     sync.Mutex
	seg    *segment // nil before the first Append and after a failure
	pack   packer
	others int64 // bytes of all segments but seg
	clock  clock
	closed bool
	told   map[string]time.Time // by line: when Log got it
}

// Create opens a store to write to it, and makes its directory if there is none. The error wraps
// ErrLocked if another process does.
func Create(dir string, o Options) (*Writer, error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("create the store: %w", err)
	}
	l, err := takeLock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("open the store %s: %w", dir, err)
	}
	w := &Writer{dir: dir, o: o, lock: l, told: map[string]time.Time{}}
	if w.others, err = w.measure(); err != nil {
		l.release()
		return nil, fmt.Errorf("open the store %s: %w", dir, err)
	}
	w.clock.start(time.Now(), w.newest())
	return w, nil
}

// errClosed is the error of a Writer that was closed.
var errClosed = errors.New("the store was closed")

// Append stores a profile of the time between from and to, mostly one part of a recording. service
// returns the service of a process of p by its index. If there is an error, nothing of p is in the
// store; the next Append may succeed. Nothing of p is kept.
func (w *Writer) Append(p *profile.Profile, service func(process int) string, from, to time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	if to.Before(from) { // the clock was set back
		to = from.Add(p.Meta.Duration)
	}
	if err := w.makeRoom(); err != nil {
		return fmt.Errorf("store %s: %w", w.dir, err)
	}
	if err := w.turnTo(from); err != nil {
		return fmt.Errorf("store %s: %w", w.dir, err)
	}
	samples := w.seg.encode(p, service, from)
	err := w.seg.write(&w.pack, from.UnixNano(), to.UnixNano(), samples)
	if isFull(err) && w.deleteOldest("the disk is full") {
		err = w.seg.write(&w.pack, from.UnixNano(), to.UnixNano(), samples)
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", w.dir, err)
	}
	return nil
}

// leastSegment is how large a segment becomes at least before another one follows because of Max.
const leastSegment = 256 << 10

// turnTo makes the segment of a time the current one.
func (w *Writer) turnTo(t time.Time) error {
	day := dayOf(t)
	at := place{day: day}
	switch {
	case w.seg == nil || w.seg.day != day:
		list, _, err := segments(w.dir, day)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if len(list) > 0 {
			at = list[len(list)-1]
		}
	case w.seg.full() || w.o.Max > 0 && w.seg.size() > max(w.o.Max/8, leastSegment):
		at.n = w.seg.n + 1
	default:
		return nil
	}
	if err := w.leave(); err != nil {
		return err
	}
	for {
		s, usable, err := openSegment(w.dir, at, w.say)
		if err != nil {
			return err
		}
		if usable {
			w.seg = s
			w.others -= s.size()
			return nil
		}
		size := s.size()
		if err := s.close(); err != nil {
			return err
		}
		if size == 0 {
			return fmt.Errorf("%s cannot be begun", at.path(w.dir, fileOfNames))
		}
		w.say(fmt.Sprintf("%s is damaged: it is left as it is, and what follows goes to files of its own", at))
		at.n++
	}
}

// leave closes the current segment.
func (w *Writer) leave() error {
	if w.seg == nil {
		return nil
	}
	w.others += w.seg.size()
	err := w.seg.close()
	w.seg = nil
	return err
}

// Size returns how many bytes the store takes.
func (w *Writer) Size() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size()
}

func (w *Writer) size() int64 {
	if w.seg == nil {
		return w.others
	}
	return w.others + w.seg.size()
}

// Close writes everything to the disk. Others may write to the store then.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	err := w.leave()
	w.lock.release()
	return err
}

// say logs a line, and the same one not more often than each ten minutes.
func (w *Writer) say(line string) {
	if now := time.Now(); now.Sub(w.told[line]) > 10*time.Minute {
		w.told[line] = now
		w.o.Log(line)
	}
}
