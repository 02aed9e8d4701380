package record

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
)

// Processes of a whole machine that have not been sampled for a while keep little, and are walked
// as before when they are sampled again; those that have ended keep everything.
func TestThin(t *testing.T) {
	s := newSession(&Options{All: true})
	defer s.close()
	p, err := s.openProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	s.procs[uint32(p.pid)] = p
	code := p.target.Memory()
	start := p.code.Native.Modules()[0].Mapping.Start
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

// However many processes there are, copies of their pages take a fixed amount of memory, and those
// for processes that have ended are freed last.
func TestPagesAreBounded(t *testing.T) {
	s := newSession(&Options{All: true})
	defer s.close()
	code := make([]byte, 4<<20)
	from := uint64(uintptr(unsafe.Pointer(&code[0])))
	const n = 12
	held := func() (sum int) {
		for _, p := range s.procs {
			sum += p.target.Memory().Held()
		}
		return sum
	}
	for i := range uint32(n) {
		p, err := s.openProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		p.sampled, p.gone = time.Unix(int64(i), 0), i == 0
		s.procs[i+1] = p
		for at := uint64(0); at < 2<<20; at += 4096 {
			if _, ok := p.target.Memory().Word((from + at) &^ 7); !ok {
				t.Fatal("this program's memory cannot be read")
			}
		}
	}
	if sum := held(); sum < allPages {
		t.Fatalf("%d processes have only %d bytes of pages", n, sum)
	}
	s.thinned = time.Now() // those sampled long ago would be forgotten anyway
	s.thin(s.thinned)
	if sum := held(); sum > allPages {
		t.Errorf("%d bytes of pages are kept, where %d may be", sum, allPages)
	}
	if s.procs[1].target.Memory().Held() == 0 || s.procs[n].target.Memory().Held() == 0 || s.procs[2].target.Memory().Held() != 0 {
		t.Error("other pages are kept than those of the process that has ended and of the ones sampled last")
	}
	runtime.KeepAlive(code)
}

// A process whose last thread has ended is forgotten, although the kernel has yet to tear it down;
// and so is one whose end nobody reported.
func TestEndIsBelieved(t *testing.T) {
	s := newSession(&Options{All: true})
	defer s.close()
	here, err := s.openProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	pid := uint32(here.pid)
	s.procs[pid] = here
	s.Notice(capture.ProcessEvent{Kind: capture.Exit, PID: pid, TID: pid + 1})
	if here.gone {
		t.Error("a process that goes on is taken for ended when a thread of it ends")
	}
	s.Notice(capture.ProcessEvent{Kind: capture.Exit, PID: pid, TID: pid, Last: true})
	if !here.gone {
		t.Error("a process is taken for living whose last thread has ended")
	}
	if s.forgetGone(time.Now().Add(time.Minute)); s.procs[pid] != nil {
		t.Error("a process that has ended is not forgotten")
	}

	cmd := exec.Command("sleep", "1000")
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	p, err := s.openProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	s.procs[uint32(p.pid)] = p
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	s.thinned = time.Time{}
	if s.thin(time.Now()); !p.gone {
		t.Error("a process that is not there any more is taken for living")
	}
}
