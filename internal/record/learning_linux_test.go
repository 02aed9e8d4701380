package record

import (
	"os"
	"testing"
	"time"
)

// Code that a VM runs for the first time must be read while the VM exists, so the next batch comes
// soon after one that contained such code.
func TestLearningHurries(t *testing.T) {
	s := session{births: newBirths(), o: &Options{}}
	s.pace.wantSoon(time.Now().Add(time.Hour))
	s.pace.batch(time.Now(), 1)
	if d := s.NextBatch(); d != newCodeBatch || d <= urgentBatch {
		t.Errorf("after new code the next batch is wanted in %v", d)
	}
	if s.pace.batch(time.Now(), 0); s.NextBatch() != 0 {
		t.Errorf("without new code the next batch is wanted in %v", s.NextBatch())
	}
	s.births.until(time.Now().Add(time.Minute))
	if s.pace.batch(time.Now(), 1); s.NextBatch() != urgentBatch {
		t.Errorf("of a young program the next batch is wanted in %v", s.NextBatch())
	}
}

// The longer a program has been seen, the smaller the share that is lost if it ends; a program that
// begins counts anew. If programs come and go by themselves, none may be missed.
func TestLearningTakesItsTime(t *testing.T) {
	begin := time.Now()
	var c batchPace
	c.batch(begin, 1)
	for _, at := range []struct{ seen, want time.Duration }{
		{0, newCodeBatch}, {3 * time.Second, newCodeBatch}, {6 * time.Second, 50 * time.Millisecond}, {time.Hour, newCodeMost},
	} {
		now := begin.Add(at.seen)
		if c.batch(now, 1); c.newCodeDelay(now) != at.want {
			t.Errorf("after %v the next batch is wanted in %v and not %v", at.seen, c.newCodeDelay(now), at.want)
		}
	}
	c.begin()
	begin = begin.Add(2 * time.Hour)
	if c.batch(begin, 1); c.newCodeDelay(begin) != newCodeBatch {
		t.Errorf("of a program that begins the next batch is wanted in %v", c.newCodeDelay(begin))
	}
	for _, o := range []*Options{{All: true}, {Children: true}} {
		s := session{births: newBirths(), o: o}
		s.pace.wantSoon(time.Now().Add(time.Hour))
		s.pace.batch(time.Now().Add(-time.Hour), 1)
		if s.NextBatch() != newCodeBatch {
			t.Errorf("where many are recorded the next batch is wanted in %v", s.NextBatch())
		}
	}
}

// If nothing new has been seen for a while batches may be less frequent, but not if somebody waits
// for them or something must be seen while it exists.
func TestCalm(t *testing.T) {
	calmed := func() *session {
		s := newSession(&Options{})
		s.pace.wantSoon(time.Now().Add(-time.Minute))
		s.pace.batch(time.Now(), 0)
		return s
	}
	s := calmed()
	defer s.close()
	if d := s.NextBatch(); d != quietBatch || d >= 500*time.Millisecond {
		t.Errorf("where nothing is new the next batch is wanted in %v", d)
	}
	p, err := s.openProcess(os.Getpid()) // it has no VM
	if err != nil {
		t.Fatal(err)
	}
	s.procs[uint32(p.pid)] = p
	s.refresh(p)
	begin := time.Now()
	if s.BatchEnd(); s.pace.quiet(begin.Add(quietAfter)) {
		t.Errorf("a program that is no VM is calm")
	}
	for name, stir := range map[string]func(*session){
		"sampling has not begun":        func(s *session) { s.pace.wantSoon(time.Time{}) },
		"something has happened":        func(s *session) { s.pace.wantSoon(time.Now().Add(time.Hour)) },
		"a little is new":               func(s *session) { s.pace.batch(time.Now(), 1) },
		"the samples are watched":       func(s *session) { s.o.Live = watcher{} },
		"the whole machine is recorded": func(s *session) { s.o.All = true },
		"children are recorded":         func(s *session) { s.o.Children = true },
	} {
		s := calmed()
		if stir(s); s.NextBatch() != 0 {
			t.Errorf("%s: the next batch is wanted in %v", name, s.NextBatch())
		}
		s.close()
	}
	s = calmed()
	defer s.close()
	if s.pace.batch(time.Now(), newCodeAllowance+1); s.NextBatch() != newCodeBatch {
		t.Errorf("where much is new the next batch is wanted in %v", s.NextBatch())
	}
}

// A little new code does not end the calm, even over a long time; more of it does.
func TestTrickle(t *testing.T) {
	at := time.Now()
	var c batchPace
	c.wantSoon(at)
	for range 30 {
		at = at.Add(time.Second)
		c.batch(at, newCodeRate)
	}
	if !c.quiet(at) {
		t.Error("a little new code ends the calm")
	}
	for range 10 {
		at = at.Add(time.Second)
		c.batch(at, 2*newCodeRate)
	}
	if c.quiet(at) {
		t.Error("more new code does not end it")
	}
}

// A runtime that is mapped after the first look, which the engine need not report, is found before
// long; in a program without one, the search is rare.
func TestLateRuntimeIsFound(t *testing.T) {
	s := newSession(&Options{})
	defer s.close()
	p, err := s.openProcess(os.Getpid()) // it has no VM
	if err != nil {
		t.Fatal(err)
	}
	for age, want := range map[time.Duration]time.Duration{0: runtimeSoon, 100 * time.Millisecond: 100 * time.Millisecond, time.Hour: runtimeAgain} {
		before := time.Now()
		p.runtimeUntil, p.runtimeNext, p.loaded = before.Add(time.Hour), time.Time{}, before.Add(-age)
		s.findRuntimes(p)
		took := time.Since(before)
		if next := p.runtimeNext.Sub(before); next < want || next > want+2*took {
			t.Errorf("%v after it began it is looked at again in %v, not %v", age, next, want)
		}
	}
}

type watcher struct{ Live }
