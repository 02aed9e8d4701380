package record

import "time"

// batchPace decides how soon the next batch of samples is wanted. Each costs as much as some twenty
// deep stacks, whatever is in it; but code must be read while it exists.
type batchPace struct {
	// newCode: the last batch contained code of a VM's that had not been seen before.
	newCode bool
	news    float64   // pieces of such code, less the allowance
	counted time.Time // when news was last updated
	wanted  time.Time // when something was last seen that needs batches soon; zero before sampling begins
	began   time.Time // when the first batch of the most recently started program came
	hurried time.Time // when a runtime last did something of which only the last time can be read

	bare bool    // the last batch had samples of a process that does not generate code, or not yet
	ran  uint64  // ns of CPU time of programs that generate code, in this batch
	told bool    // ran was told once
	busy float64 // how many CPUs such programs have used lately
}

const (
	// quietBatch is how soon the next batch is wanted if all is calm. With it a growing file is still
	// written once a second.
	quietBatch = 480 * time.Millisecond
	// quietAfter is how long nothing must have happened for that.
	quietAfter = 2 * time.Second
	// Every program keeps running a little code that has not been seen before: up to
	// newCodeAllowance pieces at once, and newCodeRate each second, are ignored.
	newCodeAllowance, newCodeRate = 4, 2
	// newCodeBatch is how soon the next batch is wanted from processes that run code which had not
	// been seen before: if they ended now, it could not be read any more. The samples since the
	// last batch can be lost, and their share of the whole matters: the longer a program has been
	// seen, the longer samples may lie.
	newCodeBatch = 25 * time.Millisecond
	// newCodeShare is how many times as long as the wait for a batch a program must have been seen.
	// One sample in ten may contain such code, so that less than a thousandth of the whole is lost.
	newCodeShare = 120
	// newCodeMost is no longer than engines let samples lie by themselves.
	newCodeMost = 100 * time.Millisecond
	// stretchedMost is the longest wait because programs use little CPU time. With half a second, of
	// javac beside a load of 25, one or two stacks in a thousand more were of code that had been freed.
	stretchedMost = 200 * time.Millisecond
)

// wantSoon requests the next batches soon.
func (c *batchPace) wantSoon(now time.Time) { c.wanted = now }

// hurry requests the next batches soon because of a runtime's own events.
func (c *batchPace) hurry(now time.Time) {
	c.hurried = now
	c.wantSoon(now)
}

// use records CPU time, in ns, of a program that generates code.
func (c *batchPace) use(ns uint64) {
	c.ran += ns
	c.told = true
}

// stretch returns how long a batch may be waited for if that is d while such programs use a whole CPU.
// What can be missed is a share of what they do: on a crowded machine, or while they mostly wait, that
// takes longer. A batch costs the same however little happened in it.
func (c *batchPace) stretch(now time.Time, d time.Duration) time.Duration {
	if !c.told || c.busy >= 1 || now.Sub(c.began) < quietAfter {
		return d
	}
	most := stretchedMost
	if now.Sub(c.hurried) < quietAfter {
		most = newCodeMost
	}
	const least = float64(newCodeBatch) / float64(stretchedMost)
	return max(min(time.Duration(float64(d)/max(c.busy, least)), most), d)
}

// batch records how many pieces of code in the last batch had not been seen before.
func (c *batchPace) batch(now time.Time, news int) {
	if c.began.IsZero() {
		c.began, c.busy = now, 1
	}
	if d := now.Sub(c.counted); c.told && d > 0 {
		// Upwards at once: what is missed is missed now.
		share := float64(c.ran) / float64(d)
		c.busy = max(share, (3*c.busy+share)/4)
	}
	c.ran = 0
	c.news = max(c.news-newCodeRate*now.Sub(c.counted).Seconds(), 0) + float64(news)
	c.counted, c.newCode = now, news > 0
	if c.news > newCodeAllowance {
		c.wantSoon(now)
	}
}

// begin records that a program begins, of which nothing has been seen yet.
func (c *batchPace) begin() { c.began = time.Time{} }

// newCodeDelay returns how soon the next batch is wanted while there is code that had not been seen
// before.
func (c *batchPace) newCodeDelay(now time.Time) time.Duration {
	return min(max(now.Sub(c.began)/newCodeShare, newCodeBatch), newCodeMost)
}

// quiet reports whether nothing has happened for a while.
func (c *batchPace) quiet(now time.Time) bool {
	return !c.wanted.IsZero() && now.Sub(c.wanted) > quietAfter
}

// NextBatch implements capture.BatchScheduler.
func (s *session) NextBatch() time.Duration {
	now := time.Now()
	quiet := s.pace.quiet(now)
	switch {
	case s.births.urgent(now):
		return urgentBatch
	case s.branches != nil:
		return branchBatch
	case s.pace.newCode && !quiet && s.many():
		return s.pace.stretch(now, newCodeBatch)
	case s.pace.newCode && !quiet:
		return s.pace.stretch(now, s.pace.newCodeDelay(now))
	case !quiet && s.mayWait() && s.pace.told && !s.pace.bare && len(s.deferred.stacks) == 0:
		return s.pace.stretch(now, newCodeMost)
	case quiet && !s.pace.newCode && s.mayWait():
		return quietBatch
	}
	return 0
}

// mayWait reports whether batches may be rare at all: nobody is watching, and no process has to be
// examined before it ends.
func (s *session) mayWait() bool { return s.o.Live == nil && !s.many() }

// many reports whether programs that nobody named may begin, and end, while others go on.
func (s *session) many() bool { return s.o.All || s.o.Children }
