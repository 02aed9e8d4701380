package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/outfile"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/target"
)

// Bounds of what a Saver does.
const (
	saveFor      = 5 * time.Second        // for one stack
	smallFor     = 300 * time.Millisecond // of it, for making it smaller
	maxTries     = 3                      // for stacks of one kind
	triesForFile = 4                      // for each file that may be written
	maxNames     = 1000                   // of one stack that are tried, because files of other recordings have them
)

// Saver saves stacks that are not complete in files of a directory: in the background, one at a time,
// one of each kind. Its methods may be called from any goroutine.
type Saver struct {
	path string
	most int                // files
	dir  *outfile.Directory // closed when nothing is being saved any more

	mu     sync.Mutex // guards what follows, and is never held while a file is written
	kinds  map[string]*tried
	now    *saving // nil: none is being saved
	saved  int
	tries  int
	over   bool
	other  [numReasons]int
	failed error // why the first one failed
}

// tried are the attempts to save a stack of one kind.
type tried struct {
	times int
	saved bool
	why   Reason // why the last one was not saved
}

// saving is a stack that is being saved.
type saving struct {
	done  chan struct{} // closed when it has been
	end   func()        // ends reading, and all else that can be ended
	hurry func()        // ends making it smaller
	kept  bool          // its file is given its name, or has it
}

// Reason is why a stack that is not complete was not saved.
type Reason uint8

// The reasons.
const (
	Alike    Reason = iota // one of its kind was saved
	Full                   // there are as many files as are wanted, or it was tried often enough
	Busy                   // another was being saved
	Unnamed                // its functions had no names yet
	Uncopied               // nothing was copied of it
	Ended                  // its process had ended
	Whole                  // it was complete when it was walked again
	Changed                // its process changed meanwhile: a replay has other frames
	Large                  // walking it read too much
	Late                   // it was being saved when the recording ended
	Failed                 // an error
	numReasons
)

var reasons = [numReasons]string{
	"like one that was saved", "after as many as are wanted", "while another was being saved", "before symbols had been read", "of which nothing could be copied", "of processes that had ended",
	"complete when walked again", "of processes that changed meanwhile", "for which too much would have to be kept", "unfinished when the recording ended", "failed",
}

// NewSaver returns a Saver of at most so many files. The errors are those of outfile.OpenDirectory.
func NewSaver(path string, most int) (*Saver, error) {
	dir, err := outfile.OpenDirectory(path)
	if err != nil {
		return nil, err
	}
	return &Saver{path: path, most: most, dir: dir, kinds: map[string]*tried{}}, nil
}

// Wants reports whether a stack of a kind is to be saved. If it is not, it is counted.
func (s *Saver) Wants(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[kind]
	switch {
	case k != nil && k.saved:
		s.other[Alike]++
	case s.over || s.saved >= s.most:
		s.other[Full]++
	case s.now != nil:
		s.other[Busy]++
	case k != nil && k.times >= maxTries:
		s.other[k.why]++
	case s.tries >= s.most*triesForFile:
		s.other[Full]++
	default:
		return true
	}
	return false
}

// Skip counts a stack that cannot be saved.
func (s *Saver) Skip(why Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.other[why]++
}

// Save walks a stack again and saves it, in the background. t is closed afterwards, c may be used
// again at once. note says why it is saved.
func (s *Saver) Save(t *target.Process, c *capture.Snapshot, kind, note string) {
	ctx, end := context.WithTimeoutCause(context.Background(), saveFor, fmt.Errorf("it took more than %v", saveFor))
	small, hurry := context.WithCancel(ctx)
	now := &saving{done: make(chan struct{}), end: end, hurry: hurry}
	s.mu.Lock()
	if s.over || s.now != nil {
		s.mu.Unlock()
		end()
		t.Close()
		return
	}
	s.now = now
	s.tries++
	k := s.kinds[kind]
	if k == nil {
		k = &tried{}
		s.kinds[kind] = k
	}
	k.times++
	s.mu.Unlock()
	held := clone(c)
	go func() {
		why, err := s.save(ctx, small, t, &held, note)
		end()
		t.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now = nil
		if s.over {
			s.dir.Close()
		}
		switch {
		case s.over && !now.kept: // it was counted
		case err != nil || why != Alike:
			s.other[why]++
			if k.why = why; s.failed == nil && why == Failed {
				s.failed = err
			}
		default:
			k.saved = true
		}
		close(now.done)
	}()
}

// save saves one stack; Alike and no error if it has been. Reducing it ends with small.
func (s *Saver) save(ctx, small context.Context, t *target.Process, c *capture.Snapshot, note string) (why Reason, err error) {
	defer func() {
		if p := recover(); p != nil {
			why, err = Failed, fmt.Errorf("candid has a fault, please report it: saving a stack: %v", p)
		}
	}()
	snap, err := Record(ctx, t, c)
	switch {
	case errors.Is(err, ErrTooMuch):
		return Large, err
	case err != nil && !t.Alive():
		return Ended, err
	case err != nil:
		return Failed, err
	case snap.Want.Certainty() < profile.CertaintyHeuristic:
		return Whole, nil
	}
	snap.Note = note
	small, cancel := context.WithTimeout(small, smallFor)
	defer cancel()
	if !snap.Reduce(small) {
		return Changed, nil
	}
	b, err := Encode(snap)
	if err != nil {
		return Large, err
	}
	if err := s.write(int(c.PID), int(c.TID), b); err != nil {
		return Failed, err
	}
	return Alike, nil
}

var errOver = errors.New("the recording has ended")

// write writes a file under the first name that nothing has.
func (s *Saver) write(pid, tid int, b []byte) error {
	var last error
	for n := range maxNames {
		name := fmt.Sprintf("candid-broken-%d-%d-%d.snapshot", pid, tid, n+1)
		if last = s.writeAs(name, b); !errors.Is(last, fs.ErrExist) {
			return last
		}
	}
	return last
}

// writeAs writes a file. After End there is none.
func (s *Saver) writeAs(name string, b []byte) error {
	f, err := s.dir.New(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if !s.count(1) {
		return errOver
	}
	if err := f.Keep(false); err != nil {
		s.count(-1)
		return err
	}
	return nil
}

// count counts the file of the stack that is being saved, or takes that back. It reports false if it is
// too late for a file.
func (s *Saver) count(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over && n > 0 {
		return false
	}
	s.saved += n
	s.now.kept = n > 0
	return true
}

// Hurry makes the stack that is being saved be written as it is.
func (s *Saver) Hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil {
		s.now.hurry()
	}
}

// End waits at most so long for the stack that is being saved, gives it up otherwise, and returns what
// was saved and what was not, as a line for the user. No other file gets a name afterwards.
func (s *Saver) End(wait time.Duration) string {
	s.mu.Lock()
	now := s.now
	s.mu.Unlock()
	if now != nil {
		now.hurry()
		select {
		case <-now.done:
		case <-time.After(wait):
		}
	}
	s.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.summary()
}

// Close gives up what is being saved.
func (s *Saver) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	switch {
	case s.now == nil:
		s.dir.Close()
	case !s.now.kept:
		s.now.end()
		s.other[Late]++
	}
}

// summary returns what was saved, and why others were not.
func (s *Saver) summary() string {
	var b strings.Builder
	stacks := func(n int) string {
		if n == 1 {
			return "1 stack"
		}
		return fmt.Sprintf("%d stacks", n)
	}
	fmt.Fprintf(&b, "%s saved in %s", stacks(s.saved), s.path)
	list := []string{}
	for why, n := range s.other {
		if n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, reasons[why]))
		}
	}
	switch {
	case len(list) > 0:
		b.WriteString("; not saved: " + strings.Join(list, ", "))
	case s.saved == 0:
		b.WriteString(": all were complete")
	}
	if s.failed != nil {
		fmt.Fprintf(&b, " (the first: %v)", s.failed)
	}
	return b.String()
}
