package record

import (
	"testing"
	"time"
)

// Batches of programs that get a part of a CPU only are rarer, as much as what they do is.
func TestBatchesByUse(t *testing.T) {
	begin := time.Now()
	for _, c := range []struct {
		what    string
		use     time.Duration // of CPU in each 100 ms
		age     time.Duration
		hurried bool
		want    time.Duration // with a wait of newCodeBatch
	}{
		{"nobody says", 0, time.Hour, false, newCodeBatch},
		{"a whole CPU", 100 * time.Millisecond, time.Hour, false, newCodeBatch},
		{"three CPUs", 300 * time.Millisecond, time.Hour, false, newCodeBatch},
		{"half a CPU", 50 * time.Millisecond, time.Hour, false, 2 * newCodeBatch},
		{"a fifth", 20 * time.Millisecond, time.Hour, false, 5 * newCodeBatch},
		{"a tenth, with collections", 10 * time.Millisecond, time.Hour, true, newCodeMost},
		{"a tenth, young", 10 * time.Millisecond, time.Second, false, newCodeBatch},
		{"next to nothing", time.Millisecond, time.Hour, false, stretchedMost},
	} {
		var p batchPace
		now := begin
		p.batch(now, 0)
		for range 100 {
			if now = now.Add(100 * time.Millisecond); c.use > 0 {
				p.use(uint64(c.use))
			}
			p.batch(now, 0)
		}
		p.began = now.Add(-c.age)
		if c.hurried {
			p.hurry(now)
		}
		got := p.stretch(now, newCodeBatch)
		if d := got - c.want; d < -time.Millisecond || d > time.Millisecond {
			t.Errorf("%s: the next batch is wanted in %v, want %v", c.what, got, c.want)
		}
		if c.use == 0 {
			continue
		}
		// A program that wakes up is followed at once.
		p.use(uint64(time.Second))
		if p.batch(now.Add(100*time.Millisecond), 0); p.stretch(now.Add(100*time.Millisecond), newCodeBatch) != newCodeBatch {
			t.Errorf("%s: then busy, and the next batch is still wanted in %v", c.what, p.stretch(now, newCodeBatch))
		}
	}
}
