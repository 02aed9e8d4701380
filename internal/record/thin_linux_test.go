package record

import (
	"os"
	"testing"
	"time"
)

// Of a whole machine's processes those that have not been sampled for a while keep little, and
// are walked as before when they are sampled again; those that have ended keep what there is.
func TestThin(t *testing.T) {
	s := newSession(&Options{All: true})
	defer s.close()
	p, err := s.openProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	s.procs[uint32(p.pid)] = p
	code := p.target.Memory()
	start := p.native.Modules()[0].Mapping.Start
	sampled := func() {
		t.Helper()
		s.refresh(p)
		if _, ok := code.Word(start); !ok {
			t.Fatalf("this program's memory at %#x cannot be read", start)
		}
		s.BatchEnd()
	}
	sampled()
	now := time.Now()
	if s.thin(now); p.thin {
		t.Error("a process that was just sampled keeps nothing")
	}
	if s.thin(now.Add(thinAfter + thinEvery)); !p.thin {
		t.Error("a process that was not sampled for long keeps everything")
	}
	if sampled(); p.thin {
		t.Error("a process that is sampled again is taken for one that is not")
	}
	p.gone = true
	if s.thin(now.Add(time.Minute)); p.thin {
		t.Error("a process that has ended keeps nothing, and cannot be read any more")
	}
	p.gone = false
	s.o.All = false
	if s.thin(now.Add(2 * time.Minute)); p.thin {
		t.Error("a process that was named keeps nothing")
	}
}
