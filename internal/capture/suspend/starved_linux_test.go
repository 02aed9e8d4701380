package suspend

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
)

// starvedReport is what an engine that hardly gets a CPU says of a process, in ns.
type starvedReport struct {
	Threads map[uint32]*starvedThread
	Taken   int           // samples of threads that ran
	Pieces  int           // pieces of time that belong to earlier samples
	Shared  time.Duration // what is shared out by a guess
	Late    int           // samples of threads that were reported to have ended
	Notes   []string
	Counts  Stops
}

type starvedThread struct {
	Ran, Waited, Slept time.Duration
	Nowhere            time.Duration // the part of it without a stack
	Lived              time.Duration // while it was recorded; 0: not known
}

// starvedSink adds up the samples of each thread by what it did, and accepts more time for those
// that it has.
type starvedSink struct {
	starvedReport
	known map[uint32][2]uint64 // by TID: the last sample of a thread that slept, and that ran
	ended map[uint32]bool
	begun func()
}

func (s *starvedSink) add(snap *capture.Snapshot) {
	if s.begun != nil {
		s.begun()
		s.begun = nil
	}
	if s.ended[snap.TID] {
		s.Late++
	}
	th := s.Threads[snap.TID]
	if th == nil {
		th = &starvedThread{}
		s.Threads[snap.TID] = th
	}
	d := time.Duration(snap.Weight)
	switch snap.State {
	case capture.Running:
		th.Ran += d
	case capture.Runnable:
		th.Waited += d
	default:
		th.Slept += d
	}
	if snap.Flags&capture.NoUser != 0 {
		th.Nowhere += d
	}
}

func (s *starvedSink) Sample(snap *capture.Snapshot) {
	if s.add(snap); snap.State == capture.Running && snap.Flags&capture.NoUser == 0 {
		s.Taken++
	}
	if snap.Sleep != 0 {
		ids := s.known[snap.TID]
		ids[snap.Sleep>>63] = snap.Sleep
		s.known[snap.TID] = ids
	}
}

func (s *starvedSink) Again(snap *capture.Snapshot) (taken, want bool) {
	if snap.Sleep == 0 || s.known[snap.TID][snap.Sleep>>63] != snap.Sleep {
		return false, true
	}
	s.add(snap)
	s.Pieces++
	return true, false
}

func (s *starvedSink) Notice(n capture.ProcessEvent) {
	if n.Kind == capture.Exit {
		s.ended[n.TID] = true
	}
}

func (s *starvedSink) BatchEnd() {}

// starve records a process in the scheduler's idle class until the standard input ends, or the
// process does, and prints a starvedReport. It is run by the test binary in a process of its own.
func starve(pid int, wall bool) error {
	tasks, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		return err
	}
	for _, task := range tasks { // the others will begin with the class of the thread that starts them
		tid, _ := strconv.Atoi(filepath.Base(task))
		if err := unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
			return fmt.Errorf("enter the idle class: %w", err)
		}
	}
	opts := options(250, pid)
	if wall {
		opts = wallOptions(250, pid)
	}
	e, err := Open(opts, "")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	s := &starvedSink{known: map[uint32][2]uint64{}, ended: map[uint32]bool{}}
	s.Threads = map[uint32]*starvedThread{}
	opening := make(chan struct{})
	if wall {
		s.begun = func() { close(opening) }
	} else {
		time.AfterFunc(300*time.Millisecond, func() { close(opening) })
	}
	go func() {
		<-opening
		fmt.Println("sampling")
	}()
	if err := e.Run(ctx, s); err != nil {
		return err
	}
	if e.scanner != nil {
		e.scanner.each(func(sl *sleeper) {
			if th := s.Threads[uint32(sl.th.tid)]; th != nil && !sl.gone && sl.th.final.at != 0 {
				// candid may lose its CPU between the last account and the end of the scan.
				th.Lived = time.Duration(sl.th.final.at - sl.began)
			}
		})
	}
	s.Notes, s.Counts, s.Shared = e.Notes(), e.Stops(), time.Duration(e.given.shared)
	out, err := json.Marshal(s.starvedReport)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", out)
	os.Exit(0)
	return nil
}

// However rarely candid gets a CPU, and whether the program goes on or has ended when recording
// does, all that each thread ran by the kernel's account is in samples, and so is what it slept and
// waited for a CPU.
func TestStarvedSumsHold(t *testing.T) {
	bin, spin := compile(t, "duty"), compile(t, "spin")
	open(t, options(99, os.Getpid())).Close() // skips if it is not permitted
	for _, c := range []struct {
		name             string
		wall, ends, goes bool
	}{{"cpu", false, false, false}, {"wall", true, false, false}, {"wall-goes-on", true, false, true}, {"cpu-ends", false, true, false}, {"wall-ends", true, true, false}} {
		t.Run(c.name, func(t *testing.T) { testStarved(t, bin, spin, c.wall, c.ends, c.goes) })
	}
}

// testStarved records threads that have come to rest before the end of recording, unless they go on.
func testStarved(t *testing.T, bin, spin string, wall, ends, goes bool) {
	const threads = 3
	p := &program{fixture.Start(t, exec.Command(bin, strconv.Itoa(threads), "2000", "3000"))}
	p.Line()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=starve-%v %d", tracerEnv, wall, p.pid()))
	candid := fixture.Start(t, cmd)
	if line := candid.Line(); line != "sampling" {
		t.Fatal(line)
	}
	var busy []*program
	for cpu := range runtime.NumCPU() {
		s := start(t, spin)
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(s.pid(), &set); err != nil {
			t.Log("a busy loop is not pinned:", err)
		}
		busy = append(busy, s)
	}
	quiet := func() {
		for _, s := range busy {
			s.Kill()
		}
	}
	before, first := accounts(t, p.pid()), cpuClock(p.pid())
	waited := delays(t, p.pid())
	if _, err := io.WriteString(p, "x"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); cpuClock(p.pid())-first < 900e6 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if !goes {
		if _, err := io.WriteString(p, "x"); err != nil {
			t.Fatal(err)
		}
		p.Line()
	}
	after := accounts(t, p.pid())
	waitedAfter := delays(t, p.pid())
	total := cpuClock(p.pid())
	if ends {
		p.CloseInput()
		for statusNumber(p.pid(), "Threads") > 1 {
			time.Sleep(time.Millisecond)
		}
		total = cpuClock(p.pid()) // nobody has reaped it
		time.Sleep(100 * time.Millisecond)
	} else {
		candid.CloseInput()
		time.Sleep(20 * time.Millisecond)
	}
	quiet()
	var r starvedReport
	text, err := bufio.NewReader(candid).ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	asked := float64(total-first) / float64(options(250).Period)
	t.Logf("%d samples, %.0f asked for; %d pieces; %s", r.Taken, asked, r.Pieces, strings.Join(r.Notes, "; "))
	if r.Late > 0 {
		t.Errorf("%d samples of threads that had been reported to have ended", r.Late)
	}
	var all time.Duration
	for tid, ran := range after {
		want, got := time.Duration(ran-before[tid]), starvedThread{}
		if th := r.Threads[tid]; th != nil {
			got = *th
		}
		all += got.Ran
		t.Logf("thread %d ran %v: %+v", tid, want, got)
		if int(tid) == p.pid() {
			continue // it does other things too
		}
		if off(got.Ran+got.Waited+got.Slept, got.Lived) > 0.02 && wall && got.Lived != 0 {
			t.Errorf("thread %d lived for %v; it ran %v, waited %v and slept %v", tid, got.Lived, got.Ran, got.Waited, got.Slept)
		}
		if goes {
			continue // nobody knows its account at the end
		}
		// Which of the threads that have ended ran after the last look at them is a guess.
		if d := got.Ran - want; math.Abs(float64(d)) > 0.02*float64(want)+float64(r.Shared) {
			t.Errorf("thread %d ran %v, its samples stand for %v", tid, want, got.Ran)
		}
		if got.Lived == 0 || !wall {
			continue
		}
		if d := got.Waited - time.Duration(waitedAfter[tid]-waited[tid]); math.Abs(float64(d)) > 0.02*float64(got.Lived) {
			t.Errorf("thread %d waited %v for a CPU, its samples stand for %v", tid, time.Duration(waitedAfter[tid]-waited[tid]), got.Waited)
		}
	}
	if goes {
		return
	}
	if off(all, time.Duration(total-first)) > 0.02 {
		t.Errorf("the process ran %v, its samples stand for %v", time.Duration(total-first), all)
	}
	if notes := strings.Join(r.Notes, "; "); float64(r.Taken) < 0.8*asked && !strings.Contains(notes, "throttled") || r.Shared > 0 && !strings.Contains(notes, "guess") {
		t.Errorf("%d samples of %.0f, %v by a guess, and it says %q", r.Taken, asked, r.Shared, notes)
	}
}

// off returns by which share of want got differs from it.
func off(got, want time.Duration) float64 {
	return math.Abs(float64(got-want)) / max(float64(want), 1)
}

// delays returns for how many ns each thread of a process has waited for a CPU.
func delays(t *testing.T, pid int) (ns map[uint32]uint64) {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	ns = map[uint32]uint64{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		if _, late, ok := parseAccount(b); ok {
			tid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			ns[uint32(tid)] = late
		}
	}
	return ns
}
