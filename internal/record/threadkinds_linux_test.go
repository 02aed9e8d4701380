package record

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// The kind of a thread stays known when its program has ended and the VM reports no thread any
// more; a thread that came too late to be asked about is of unknown kind, not native.
func TestThreadKindsStay(t *testing.T) {
	for _, major := range []int{8, 21} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			classes := fixture.Classes(t, major, filepath.Join("testdata", "Waits.java"))
			java := fixture.Start(t, exec.Command(fixture.JDKTool(t, major, "java"), "-Xmx64m", "-cp", classes, "Waits"))
			java.Await("ready")
			s := newSession(&Options{})
			defer s.close()
			p, err := s.openProcess(java.PID())
			if err != nil {
				t.Fatal(err)
			}
			if p.able.names == nil {
				t.Fatal("the VM is not found")
			}
			tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", java.PID()))
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range tasks {
				tid, err := strconv.Atoi(task.Name())
				if err != nil {
					t.Fatal(err)
				}
				s.thread(p, uint32(tid))
			}
			for range 3 { // a thread that is just starting delays the answer
				s.flushNames(p)
			}
			before := kindsOf(s)
			for _, want := range []struct{ name, kind string }{
				{"main", "java"}, {"parker", "java"}, {"waiter", "java"}, {"enterer", "java"}, {"sleeper", "java"}, {"java", "native"},
				{"Signal Dispatcher", "vm"}, {"VM Thread", "vm"},
			} {
				if before[want.name] != want.kind {
					t.Errorf("thread %q is of kind %q, not %q", want.name, before[want.name], want.kind)
				}
			}

			java.Kill()
			s.thread(p, 1<<22-1) // there is no such thread: it has ended
			ran := s.thread(p, 1<<22-2)
			s.ranManaged(p, ran, &walk.Stack{Frames: []walk.Frame{{Kind: walk.KindNative}, {Kind: walk.KindC1}}})
			s.flushNames(p)
			for _, th := range s.b.Threads() {
				switch want := before[th.Name]; {
				case th.TID == 1<<22-1:
					if th.Kind != "" {
						t.Errorf("a thread that nobody could be asked about is of kind %q", th.Kind)
					}
				case th.TID == 1<<22-2:
					if th.Kind != "java" {
						t.Errorf("a thread that ran Java code and ended is of kind %q", th.Kind)
					}
				case th.Kind != want:
					t.Errorf("thread %q was of kind %q, and when the program had ended %q", th.Name, want, th.Kind)
				}
			}
		})
	}
}

func kindsOf(s *session) map[string]string {
	kinds := make(map[string]string)
	for _, th := range s.b.Threads() {
		kinds[th.Name] = th.Kind
	}
	return kinds
}

// A filter by kind reports how many samples it leaves out because their threads' kind is unknown.
func TestUnknownKindsAreCounted(t *testing.T) {
	b := profile.NewBuilder()
	b.AddProcess(profile.Process{PID: 1, Runtime: "hotspot 21"})
	b.AddProcess(profile.Process{PID: 2}) // its threads have no kinds
	for i, kind := range []string{"java", "native", "", ""} {
		th := b.NewThread(1+i/3, 10+i, fmt.Sprint("t", i))
		b.Threads()[th].Kind = kind
		for range i + 1 {
			b.Add(profile.Sample{Thread: th, Weight: 1})
		}
	}
	p := b.Finish()
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "count", Period: 1}}
	for _, c := range []struct {
		kinds   []string
		unknown uint64
	}{{nil, 0}, {[]string{"java"}, 0}, {[]string{"native", "gc"}, 3}, {[]string{"java", "unknown"}, 0}} {
		if n := p.OfUnknownKind(profile.Filter{ThreadKinds: c.kinds}); n != c.unknown {
			t.Errorf("of %v %d samples are left out because nobody knows, not %d", c.kinds, n, c.unknown)
		}
	}
	// A thread of a process that runs Java may be the program's own, so java does not lose it.
	for kind, want := range map[string]uint64{"unknown": 7, "java": 1 + 3, "native": 2} {
		if _, chosen := p.Passing(profile.Filter{ThreadKinds: []string{kind}}); chosen.Samples != want {
			t.Errorf("%d samples are of kind %s, not %d", chosen.Samples, kind, want)
		}
	}
}
