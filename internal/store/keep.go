package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// measure returns how many bytes the store takes.
func (w *Writer) measure() (total int64, err error) {
	list, err := days(w.dir)
	for _, day := range list {
		_, size, err := segments(w.dir, day)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
		total += size
	}
	return total, err
}

// newest returns the beginning of the last day that the store has.
func (w *Writer) newest() time.Time {
	list, _ := days(w.dir)
	if len(list) == 0 {
		return time.Time{}
	}
	t, _ := time.Parse(dayForm, list[len(list)-1])
	return t
}

// makeRoom deletes what is too old or too much. It fails if there is no room anyway.
func (w *Writer) makeRoom() error {
	if now := time.Now(); w.o.Keep > 0 && w.clock.steady(now, w.o.Keep) {
		w.deleteBefore(now.Add(-w.o.Keep))
	}
	for w.o.Max > 0 && w.size() > w.o.Max && w.deleteOldest(fmt.Sprintf("the store may take %d MB", w.o.Max/1e6)) {
	}
	for {
		free, total, err := freeSpace(w.dir)
		if err != nil {
			return nil // what cannot be asked is not limited
		}
		least := max(uint64(max(w.o.MinFree, 0)), uint64(float64(total)*w.o.MinFreePercent/100))
		if free >= least {
			return nil
		}
		if !w.deleteOldest(fmt.Sprintf("%d MB of the disk have to be free", least/1e6)) {
			return fmt.Errorf("%w: %d MB of the disk are free, and %d MB have to be", ErrNoSpace, free/1e6, least/1e6)
		}
	}
}

// deleteBefore deletes the days that ended before a time.
func (w *Writer) deleteBefore(t time.Time) {
	list, _ := days(w.dir)
	for _, day := range list {
		begin, _ := time.Parse(dayForm, day)
		if !begin.AddDate(0, 0, 1).Before(t) {
			return
		}
		w.deleteDay(day, fmt.Sprintf("it is older than %v", w.o.Keep))
	}
}

// deleteOldest deletes the oldest day or, if only the current one is there, the oldest segment of
// it. It reports whether there was one.
func (w *Writer) deleteOldest(why string) bool {
	list, _ := days(w.dir)
	for _, day := range list {
		if w.seg != nil && day == w.seg.day {
			continue
		}
		if w.deleteDay(day, why) {
			return true
		}
	}
	if w.seg == nil {
		return false
	}
	segs, _, _ := segments(w.dir, w.seg.day)
	for _, s := range segs {
		if s.n >= w.seg.n {
			continue
		}
		for i := range filesOfSegment {
			_ = os.Remove(s.path(w.dir, filesOfSegment-1-i)) // the samples first: readers miss nothing then
		}
		w.recount()
		w.say(fmt.Sprintf("the oldest part of %s was deleted: %s", w.seg.day, why))
		return true
	}
	return false
}

func (w *Writer) deleteDay(day, why string) bool {
	if w.seg != nil && w.seg.day == day {
		return false
	}
	if err := os.RemoveAll(filepath.Join(w.dir, day)); err != nil {
		w.say(fmt.Sprintf("%s could not be deleted: %v", day, err))
		return false
	}
	w.recount()
	w.say(fmt.Sprintf("%s was deleted: %s", day, why))
	return true
}

func (w *Writer) recount() {
	if n, err := w.measure(); err == nil {
		if w.others = n; w.seg != nil {
			w.others -= w.seg.size()
		}
	}
}

// clock decides whether the time of day may be believed before days are deleted because of it. A
// machine may start in 1970 or in 2100, and be right a minute later.
type clock struct {
	last     time.Time // with a monotonic clock
	steadyAt time.Time // likewise: when it was started, or stepped
	newest   time.Time // the last day that the store had
}

// steadyAfter is how long the clock must not have been stepped if it is far from the store's days.
const steadyAfter = time.Hour

func (c *clock) start(now, newest time.Time) { c.last, c.steadyAt, c.newest = now, now, newest }

// steady reports whether days may be deleted by age. If the newest day has not been longer ago than
// keep, not everything would be deleted, and the clock is believed at once.
func (c *clock) steady(now time.Time, keep time.Duration) bool {
	byDay, really := now.Round(0).Sub(c.last.Round(0)), now.Sub(c.last)
	if d := (byDay - really).Abs(); d > 10*time.Minute {
		c.steadyAt, c.newest = now, c.last.Round(0)
	}
	c.last = now
	if c.newest.IsZero() || now.Sub(c.steadyAt) >= steadyAfter {
		return true
	}
	ago := now.Round(0).Sub(c.newest)
	return ago > -48*time.Hour && ago < keep+24*time.Hour
}
