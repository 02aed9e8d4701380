package record

import "time"

// batchPace decides how soon the next batch of samples is wanted. Each costs as much as some twenty
// deep stacks, whatever is in it; but code must be read while it exists.
type batchPace struct {
	// learning: the last batch contained code of a VM's that had not been seen before.
	learning bool
	news     float64   // pieces of such code, less the allowance
	counted  time.Time // when news was last updated
	stirred  time.Time // when something was last seen that needs batches soon; zero before sampling begins
	began    time.Time // when the first batch of the most recently started program came
}

const (
	// calmly is how soon the next batch is wanted if all is calm. With it a growing file is still
	// written once a second.
	calmly = 480 * time.Millisecond
	// calmAfter is how long nothing must have happened for that.
	calmAfter = 2 * time.Second
	// Every program keeps running a little code that has not been seen before: up to trickle pieces
	// at once, and trickleRate each second, are ignored.
	trickle, trickleRate = 4, 2
	// learningly is how soon the next batch is wanted from processes that run code which had not
	// been seen before: if they ended now, it could not be read any more. The samples since the
	// last batch can be lost, and their share of the whole matters: the longer a program has been
	// seen, the longer samples may lie.
	learningly = 25 * time.Millisecond
	// learnedShare is how many times as long as the wait for a batch a program must have been seen.
	// One sample in ten may contain such code, so that less than a thousandth of the whole is lost.
	learnedShare = 120
	// learnedMost is no longer than engines let samples lie by themselves.
	learnedMost = 100 * time.Millisecond
)

// stir requests the next batches soon.
func (c *batchPace) stir(now time.Time) { c.stirred = now }

// batch records how many pieces of code in the last batch had not been seen before.
func (c *batchPace) batch(now time.Time, news int) {
	if c.began.IsZero() {
		c.began = now
	}
	c.news = max(c.news-trickleRate*now.Sub(c.counted).Seconds(), 0) + float64(news)
	c.counted, c.learning = now, news > 0
	if c.news > trickle {
		c.stir(now)
	}
}

// begin records that a program begins, of which nothing has been seen yet.
func (c *batchPace) begin() { c.began = time.Time{} }

// learns returns how soon the next batch is wanted while there is code that had not been seen
// before.
func (c *batchPace) learns(now time.Time) time.Duration {
	return min(max(now.Sub(c.began)/learnedShare, learningly), learnedMost)
}

// is reports whether nothing has happened for a while.
func (c *batchPace) is(now time.Time) bool {
	return !c.stirred.IsZero() && now.Sub(c.stirred) > calmAfter
}

// NextBatch implements capture.BatchScheduler.
func (s *session) NextBatch() time.Duration {
	now := time.Now()
	quiet := s.pace.is(now)
	switch {
	case s.births.hurries(now):
		return hurriedly
	case s.pace.learning && !quiet && s.many():
		return learningly
	case s.pace.learning && !quiet:
		return s.pace.learns(now)
	case quiet && !s.pace.learning && s.mayWait():
		return calmly
	}
	return 0
}

// mayWait reports whether batches may be rare at all: nobody is watching, and no process has to be
// examined before it ends.
func (s *session) mayWait() bool { return s.o.Live == nil && !s.many() }

// many reports whether programs that nobody named may begin, and end, while others go on.
func (s *session) many() bool { return s.o.All || s.o.Children }
