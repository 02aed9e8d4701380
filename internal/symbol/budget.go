package symbol

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Budget bounds what the symbols of a recording may take: one for all files of all its processes. A
// target chooses its files, and a small one can describe a great deal. What is over the budget stays
// without source lines or without names, and Note says so. A nil Budget bounds nothing. Its methods
// may be called from any goroutine.
type Budget struct {
	room  func(bytes uint64) bool
	most  time.Duration // of CPU, for the beginning
	began time.Time

	spent   atomic.Int64 // ns of CPU
	hurried atomic.Bool
	over    chan struct{} // closed when nothing more is awaited
	end     sync.Once

	tables, lines, slow, awaited atomic.Int64 // how many files were left out, and why
}

// later is the share of the time since the budget was made that is added to its CPU time: an agent records for
// weeks, and what is installed meanwhile has lines too.
const later = 200 // 1/200: half a percent

// NewBudget returns a budget of so much CPU time, which grows slowly with time. room reports whether there is memory for that many
// bytes of tables; nil: always.
func NewBudget(cpu time.Duration, room func(bytes uint64) bool) *Budget {
	return &Budget{room: room, most: cpu, began: time.Now(), over: make(chan struct{})}
}

// limit returns how much CPU time may have been spent by now.
func (b *Budget) limit() time.Duration { return b.most + time.Since(b.began)/later }

var errNoRoom = errors.New("there is no room left for the symbols of so many or so large files")

// table reports whether there is room for a table of symbols.
func (b *Budget) table(bytes uint64) bool {
	if b == nil || b.room == nil || b.room(bytes) {
		return true
	}
	b.tables.Add(1)
	return false
}

// wantsLines reports whether source lines may still be read.
func (b *Budget) wantsLines() bool {
	switch {
	case b == nil:
		return true
	case b.spent.Load() >= int64(b.limit()):
		b.slow.Add(1)
	case b.hurried.Load():
		b.lines.Add(1)
	default:
		return true
	}
	return false
}

// Hurry ends the reading of source lines: the recording has ended.
func (b *Budget) Hurry() { b.hurried.Store(true) }

// GiveUp ends waiting for files that are still being read.
func (b *Budget) GiveUp() { b.end.Do(func() { close(b.over) }) }

// ended is closed by GiveUp.
func (b *Budget) ended() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.over
}

// Spent returns how much CPU time was spent on reading symbols.
func (b *Budget) Spent() time.Duration { return time.Duration(b.spent.Load()) }

// Note returns what was left out and why, "" if nothing was.
func (b *Budget) Note() string {
	var parts []string
	add := func(n *atomic.Int64, format string) {
		if n := n.Load(); n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	add(&b.tables, "%d tables of symbols were not read, because together they would take too much memory")
	add(&b.slow, "source lines were not read %d times, because reading symbols had taken "+b.limit().Round(time.Second).String()+" of CPU time")
	add(&b.lines, "source lines of %d files were not read, because the recording had ended")
	add(&b.awaited, "the symbols of %d files were still being read when the recording had ended")
	if len(parts) == 0 {
		return ""
	}
	return "some functions have no lines or names: " + strings.Join(parts, "; ")
}

// turn is a piece of work on symbols, whose CPU time counts. It runs in one goroutine, which is locked to
// its thread and must not read targets' memory meanwhile (vmread.Ends.Unlocked).
type turn struct {
	b     *Budget
	start time.Duration
}

// turn begins one; done must be called.
func (b *Budget) turn() turn {
	if b == nil {
		return turn{}
	}
	runtime.LockOSThread()
	return turn{b, threadTime()}
}

func (t turn) done() {
	if t.b != nil {
		t.b.spent.Add(int64(threadTime() - t.start))
		runtime.UnlockOSThread()
	}
}

// stop returns a function that reports whether the work must end; nil if it never must.
func (t turn) stop() func() bool {
	if t.b == nil {
		return nil
	}
	return func() bool {
		return t.b.hurried.Load() || t.b.spent.Load()+int64(threadTime()-t.start) > int64(t.b.limit())
	}
}
