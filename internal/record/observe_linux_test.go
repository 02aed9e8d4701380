package record

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/target"
)

// collects records Collects, and also returns the VM's own log.
func collects(t *testing.T, major int, flags ...string) (p *profile.Profile, pid int, log string) {
	t.Helper()
	dir := fixture.Classes(t, major, filepath.Join("testdata", "Collects.java"))
	logFile := filepath.Join(dir, "gc.log")
	args := append([]string{"-Xmx64m", "-Dsome.password=hunter2", "-Dplain=shown"}, flags...)
	if major >= 11 {
		args = append(args, "-Xlog:gc:file="+logFile)
	}
	cmd := exec.Command(fixture.JDKTool(t, major, "java"), append(args, "-cp", dir, "Collects", "--token", "hunter2")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("it says %q", lines.Text())
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		lines.Scan()
		time.AfterFunc(1200*time.Millisecond, stop) // and it is read once more
	}()
	// The program starts its collections when its counters have been read once: what was before
	// that is unknown.
	var begin sync.Once
	r, err := Run(ctx, Options{PIDs: []int{cmd.Process.Pid}, Hz: 97, Events: []string{"cpu"}, Progress: func(uint64, time.Duration) {
		begin.Do(func() { fmt.Fprintln(in) })
	}})
	if err != nil {
		t.Skipf("recording is not possible here: %v", err)
	}
	b, _ := os.ReadFile(logFile)
	return r.Profile, cmd.Process.Pid, string(b)
}

// observedText returns a value of the first observation of a kind whose first value is key, "" for
// any.
func observedText(t *testing.T, p *profile.Profile, kind uint16, key string, value int) string {
	t.Helper()
	for _, o := range p.Observations {
		if o.Kind == kind && (key == "" || o.Values[0].Text == key) {
			return o.Values[value].Text
		}
	}
	t.Errorf("no %s %s", profile.ObservationKinds[kind].Name, key)
	return ""
}

// The reported garbage collections are the VM's, and its description and settings are in the
// recording, without its secrets.
func TestObservesJVM(t *testing.T) {
	for major, flags := range map[int][]string{8: {"-XX:+UseParallelGC"}, 17: {"-XX:+UseG1GC"}, 25: {"-XX:+UseSerialGC"}} {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			p, pid, log := collects(t, major, flags...)
			// [1.234s][info][gc] GC(3) Pause Full (System.gc()) 2M->1M(64M) 12.345ms
			logged := map[uint64]float64{}
			for _, m := range regexp.MustCompile(`GC\((\d+)\) Pause.* ([0-9.]+)ms`).FindAllStringSubmatch(log, -1) {
				id, _ := strconv.ParseUint(m[1], 10, 64)
				ms, _ := strconv.ParseFloat(m[2], 64)
				logged[id] = ms
			}
			seen, pauses, last, counts := 0, 0, uint64(0), map[string]uint64{}
			for _, o := range p.Observations {
				switch o.Kind {
				case profile.GarbageCollection:
					seen++
					id, name, cause := o.Values[0].Number, o.Values[1].Text, o.Values[2].Text
					if o.Time < last || o.Time+o.Duration > uint64(p.Meta.Duration) || o.Duration == 0 || cause != "" && !strings.HasPrefix(cause, "System.gc()") {
						t.Errorf("%s %d at %d for %d ns, because of %q", name, id, o.Time, o.Duration, cause)
					}
					last = o.Time
					ms, ok := logged[id]
					if major >= 11 && (!ok || float64(o.Duration)/1e6 > ms+0.001) {
						t.Errorf("%s %d takes %.3f ms; logged are %v", name, id, float64(o.Duration)/1e6, logged)
					}
				case profile.GCPhasePause:
					pauses++
				case profile.CollectorStatistics:
					counts[o.Values[0].Text] = o.Values[1].Number
				}
			}
			told := uint64(0)
			for _, n := range counts {
				told += n
			}
			// Collections that came at the same time, because the machine was busy, are only
			// counted. The last ones may come when they are no longer read.
			if seen == 0 || pauses < seen || told < uint64(seen) || major >= 11 && told > uint64(len(logged)) {
				t.Errorf("%d collections and %d pauses seen, %d told, %d logged", seen, pauses, told, len(logged))
			}
			for _, kind := range []uint16{
				profile.CPULoad, profile.ResidentSetSize, profile.PhysicalMemory, profile.CPUInformation, profile.GCConfiguration, profile.GCHeapConfiguration,
				profile.ClassLoadingStatistics, profile.JavaThreadStatistics, profile.CompilerStatistics, profile.HeapStatistics, profile.SafepointStatistics,
			} {
				found := false
				for _, o := range p.Observations {
					if o.Kind == kind {
						found = true
						for i, v := range o.Values {
							k := &profile.ObservationKinds[kind]
							peakTimeSpent := kind == profile.CompilerStatistics && i == 9
							pauseTarget := kind == profile.GCConfiguration && i == 7
							if v.Number == profile.UnknownNumber && k.Values[i] != profile.ValueFlag && !peakTimeSpent && (!pauseTarget || major == 17) && major > 8 {
								t.Errorf("%s: value %d is not known", k.Name, i)
							}
						}
					}
				}
				if !found {
					t.Errorf("no %s", profile.ObservationKinds[kind].Name)
				}
			}
			for _, o := range p.Observations {
				for _, v := range o.Values {
					if strings.Contains(v.Text, "hunter2") {
						t.Errorf("%s tells a secret: %q", profile.ObservationKinds[o.Kind].Name, v.Text)
					}
				}
			}
			if c := p.Processes[0].Command; strings.Contains(c, "hunter2") || !strings.Contains(c, "-Dplain=shown") {
				t.Errorf("the command is %q", c)
			}
			jvm := 0
			for name, at := range librariesOf(p) {
				if strings.HasSuffix(name, "/libjvm.so") {
					jvm += len(at)
				}
			}
			if jvm != 1 {
				t.Errorf("libjvm.so is told of %d times", jvm)
			}
			if args := observedText(t, p, profile.JVMInformation, "", 2); !strings.Contains(args, "-Dplain=shown") || !strings.Contains(args, "-Dsome.password=***") {
				t.Errorf("the VM's arguments are %q", args)
			}
			if v := observedText(t, p, profile.InitialSystemProperty, "java.vm.name", 1); !strings.Contains(v, "VM") {
				t.Errorf("the VM is %q", v)
			}
			if o := observedText(t, p, profile.UnsignedLongFlag, "MaxHeapSize", 2); o != "Command line" {
				t.Errorf("MaxHeapSize was set by %q", o)
			}
			for _, o := range p.Observations {
				if o.Kind == profile.JVMInformation && (o.Values[6].Number != uint64(pid) || o.Process != 0) {
					t.Errorf("%+v", o)
				}
			}
		})
	}
}

// A native program has load and memory, and the machine has a name.
func TestObservesAnyProgram(t *testing.T) {
	c := spin(t)
	tooLittle := fixture.Watch(t)
	r := run(t, Options{PIDs: []int{c.Process.Pid}, Duration: 2500 * time.Millisecond})
	loads, most, ofThreads := 0, 0.0, 0.0
	for _, o := range r.Profile.Observations {
		switch o.Kind {
		case profile.CPULoad:
			loads++
			most = max(most, o.Values[0].Share()) // on a busy machine it does not run in every interval
			for _, v := range o.Values {
				if v.Share() < 0 || v.Share() > 1 {
					t.Errorf("load %v", v.Share())
				}
			}
		case profile.ThreadCPULoad:
			if th := r.Profile.Threads[o.Values[0].Number]; th.PID != c.Process.Pid || o.Process != 0 {
				t.Errorf("%+v is of %+v", o, th)
			}
			load := o.Values[1].Share() + o.Values[2].Share()
			if load <= 0 || load > 1 {
				t.Errorf("a thread's load is %v", load)
			}
			ofThreads += load
		case profile.ResidentSetSize:
			if o.Values[0].Number < 1<<20 || o.Values[1].Number < o.Values[0].Number {
				t.Errorf("%+v", o)
			}
		case profile.JVMInformation, profile.GarbageCollection:
			t.Errorf("%+v", o)
		}
	}
	exe, err := filepath.EvalSymlinks(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	if o := librariesOf(r.Profile)[exe]; len(o) != 1 || o[0].Process != 0 || o[0].Values[2].Number <= o[0].Values[1].Number {
		t.Errorf("%s is told of as %+v", exe, o)
	}
	if most == 0 || ofThreads == 0 {
		tooLittle("the program was seen at work in none of %d looks, its threads' loads are %v", loads, ofThreads)
	}
	if loads == 0 || ofThreads > 1 || observedText(t, r.Profile, profile.OSInformation, "", 0) == "" {
		t.Errorf("%d loads, of %v at most; all of its threads are %v", loads, most, ofThreads)
	}
}

// librariesOf returns the libraries that are reported, by name.
func librariesOf(p *profile.Profile) map[string][]profile.Observation {
	out := map[string][]profile.Observation{}
	for _, o := range p.Observations {
		if o.Kind == profile.NativeLibrary {
			out[o.Values[0].Text] = append(out[o.Values[0].Text], o)
		}
	}
	return out
}

// Nothing is read besides samples where only samples are wanted.
func TestUnobserved(t *testing.T) {
	for _, un := range []bool{false, true} {
		s := newSession(&Options{Unobserved: un})
		s.observe(false)
		if seen, _ := s.b.Observations(); (len(seen) == 0) != un {
			t.Errorf("unobserved %v: %d observations", un, len(seen))
		}
		self, err := target.Open(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if cpu := s.cpuTimes(&process{pid: os.Getpid(), target: self}, nil); (len(cpu) == 0) != un {
			t.Errorf("unobserved %v: the CPU time of %d threads", un, len(cpu))
		}
		self.Close()
	}
}

// The traffic through the interfaces of this process is reported, once for all processes that share
// them.
func TestObservesNetwork(t *testing.T) {
	s := newSession(&Options{})
	self, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	p := &process{pid: os.Getpid(), target: self}
	begun := time.Now()
	s.network(p, begun)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const sent = 4 << 20
	go func() {
		if c, err := net.Dial("tcp4", l.Addr().String()); err == nil {
			_, _ = c.Write(make([]byte, sent))
			c.Close()
		}
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := io.Copy(io.Discard, c); n != sent || err != nil {
		t.Fatalf("%d of %d bytes came: %v", n, sent, err)
	}
	now := time.Now()
	s.network(p, now)
	s.network(&process{pid: os.Getpid(), target: self}, now)
	found := 0
	seen, _ := s.b.Observations()
	for _, o := range seen {
		if o.Kind != profile.NetworkUtilization || o.Values[0].Text != "lo" {
			continue
		}
		found++
		for _, rate := range o.Values[1:] {
			// Other processes use the interface too.
			if least := 8 * sent / now.Sub(begun).Seconds() * 0.999; o.Process != -1 || float64(rate.Number) < least {
				t.Errorf("%+v, of at least %.0f bits a second", o, least)
			}
		}
	}
	if found != 1 {
		t.Errorf("the interface is told of %d times", found)
	}
	for _, c := range []struct {
		bytes uint64
		in    time.Duration
		want  uint64
	}{{1000, time.Second, 8000}, {1000, 2 * time.Second, 4000}, {1, 0, 0}, {1, -1, 0}, {1<<64 - 1, 1, 1<<63 - 1}} {
		if got := bitRate(c.bytes, c.in); got != c.want {
			t.Errorf("%d bytes in %v: %d", c.bytes, c.in, got)
		}
	}
}

// Only some of many processes are observed, which is reported, and a new process takes the place of
// one that has gone.
func TestObservesSome(t *testing.T) {
	s := newSession(&Options{})
	s.observer.of = map[*process]*observed{}
	for pid := range uint32(300) {
		s.procs[pid] = &process{pid: int(pid)}
	}
	s.chooseObserved()
	first := len(s.observer.of)
	for p := range s.observer.of {
		p.gone = true
		delete(s.observer.of, p)
		break
	}
	s.chooseObserved()
	if first != maxObserved || len(s.observer.of) != maxObserved || len(s.b.Meta().Notes) != 1 {
		t.Errorf("%d of 300 processes, then %d; %q", first, len(s.observer.of), s.b.Meta().Notes)
	}
	for p := range s.observer.of {
		if p.gone {
			t.Errorf("process %d is observed, which is gone", p.pid)
		}
	}
	// On the whole machine only Java's are.
	s.observer.of, s.o.All = map[*process]*observed{}, true
	s.chooseObserved()
	if len(s.observer.of) != 0 {
		t.Errorf("%d processes that are no VM's", len(s.observer.of))
	}
}
