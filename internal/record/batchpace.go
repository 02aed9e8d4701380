package record

import "time"

// batchPace knows how soon the next batch of samples is wanted. Each costs as much as some
// twenty deep stacks, whatever is in it; but code must be read while it is there.
type batchPace struct {
	// learning: the last batch had code of a VM's that had not been seen before.
	learning bool
	news     float64   // pieces of such code, less those that may be
	counted  time.Time // when that was
	stirred  time.Time // when something was last seen that wants batches soon; zero before sampling begins
	began    time.Time // when there was the first batch of the program that began last
}

const (
	// calmly is how soon the next batch is wanted where all is calm. With it a file
	// that grows is still written once a second.
	calmly = 480 * time.Millisecond
	// calmAfter is how long nothing must have happened for that.
	calmAfter = 2 * time.Second
	// Of code that has not been seen before there is a little in every program, for long:
	// so much of it at once, and each second, means nothing.
	trickle, trickleRate = 4, 2
	// learningly is how soon the next batch is wanted of those that run code which had
	// not been seen: were they to end now, it could not be read any more. What can be
	// lost so is what came since the last batch, and matters by its share of all: the
	// longer a program has been seen, the longer may samples lie.
	learningly = 25 * time.Millisecond
	// learnedShare is how many times as long a program must have been seen. Of samples
	// one in ten may have such code, so that less than a thousandth of all is lost.
	learnedShare = 120
	// learnedMost is no longer than engines let samples lie by themselves.
	learnedMost = 100 * time.Millisecond
)

// stir says that the next batches are wanted soon.
func (c *batchPace) stir(now time.Time) { c.stirred = now }

// batch says how many pieces of code the last one had that had not been seen before.
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

// begin says that a program begins, of which nothing has been seen yet.
func (c *batchPace) begin() { c.began = time.Time{} }

// learns is how soon the next batch is wanted while there is code that had not been
// seen before.
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

// mayWait reports whether batches may come rarely at all: nobody watches, and no process
// has to be looked at before it ends.
func (s *session) mayWait() bool { return s.o.Live == nil && !s.many() }

// many reports whether programs may come that nobody named, and end, while others go on.
func (s *session) many() bool { return s.o.All || s.o.Children }
