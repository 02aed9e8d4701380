package suspend

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/hostinfo"
)

// duty is a program of threads that compute and sleep in turns.
type duty struct {
	threads, run, sleep int // µs
	hz                  float64
}

// dutySink records where samples lie.
type dutySink struct {
	*crowdSink
	lo, hi uint64 // of the function that computes

	in, asleep, nowhere, elsewhere amount
	places                         map[uint32]*amount // by TID, the amount that the thread's last sample is in
	weights                        map[uint32]uint64  // by TID, the weight of that sample and of time added to it later
	squares                        float64            // sum of the squared weights
}

type amount struct {
	samples int
	weight  uint64
}

func (s *dutySink) Sample(snap *capture.Snapshot) {
	s.crowdSink.Sample(snap)
	at := &s.elsewhere
	switch {
	case snap.Flags&capture.NoUser != 0:
		at = &s.nowhere
	case snap.Regs.PC >= s.lo && snap.Regs.PC < s.hi:
		at = &s.in
	case snap.Regs.Known == placeKnown:
		at = &s.asleep
	}
	at.samples++
	at.weight += snap.Weight
	s.places[snap.TID], s.weights[snap.TID] = at, snap.Weight
	s.squares += float64(snap.Weight) * float64(snap.Weight)
}

func (s *dutySink) Again(snap *capture.Snapshot) (taken, want bool) {
	if taken, want = s.crowdSink.Again(snap); taken {
		w, more := float64(s.weights[snap.TID]), float64(snap.Weight)
		s.places[snap.TID].weight += snap.Weight
		s.squares += (w+more)*(w+more) - w*w
	}
	return taken, want
}

// Even beside programs that take all CPUs, samples stand for what each thread ran by the kernel's
// account, and for where it ran, not for where it is found when it has gone to sleep.
func TestSharesOfThreadsThatSleep(t *testing.T) {
	bin := compile(t, "duty")
	open(t, options(99, os.Getpid())).Close() // skips if it is not permitted
	cases := []duty{{1, 1000, 19000, 1000}, {2, 100, 1000, 250}, {40, 500, 20000, 250}}
	if fixture.Full(t) {
		cases = append(cases, duty{1, 1000, 100, 250}, duty{1, 1000, 0, 1000}, duty{400, 500, 50000, 99})
	}
	spin := compile(t, "spin")
	for range runtime.NumCPU() {
		start(t, spin)
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%d-threads-%d-%d-%gHz", c.threads, c.run, c.sleep, c.hz), func(t *testing.T) { c.test(t, bin) })
	}
}

func (d duty) test(t *testing.T, bin string) {
	p := &program{fixture.Start(t, exec.Command(bin, strconv.Itoa(d.threads), strconv.Itoa(d.run), strconv.Itoa(d.sleep)))}
	sink := &dutySink{crowdSink: newCrowdSink(), places: map[uint32]*amount{}, weights: map[uint32]uint64{}}
	var part float64
	if _, err := fmt.Sscanf(p.Line(), "0x%x 0x%x %f", &sink.lo, &sink.hi, &part); err != nil {
		t.Fatal(err)
	}
	own := hostinfo.OwnCPU()
	opts := options(d.hz, p.pid())
	e := open(t, opts)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx, sink) }()
	for begun := false; !begun; {
		e.mu.Lock()
		begun = e.list != nil
		e.mu.Unlock()
		if ctx.Err() != nil {
			t.Fatal("sampling has not begun in a minute")
		}
		time.Sleep(time.Millisecond)
	}
	before := accounts(t, p.pid())
	if _, err := io.WriteString(p, "x"); err != nil {
		t.Fatal(err)
	}
	// This is enough for some fifty samples, if none were missed.
	used := cpuClock(p.pid())
	for ctx.Err() == nil && cpuClock(p.pid())-used < 50*uint64(opts.Period)+uint64(d.threads)*2e6 {
		time.Sleep(20 * time.Millisecond)
	}
	if _, err := io.WriteString(p, "x"); err != nil {
		t.Fatal(err)
	}
	p.Line()
	after := accounts(t, p.pid())
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	own = hostinfo.OwnCPU() - own
	var ran, all uint64
	for tid, a := range after {
		got, want := sink.weight[tid], a-before[tid]
		ran, all = ran+want, all+got
		if int(tid) == p.pid() {
			continue // it also runs between the looks
		}
		// A thread that ran for less than an eighth of a period need not be reported.
		if diff := math.Abs(float64(got) - float64(want)); diff > 0.02*float64(want) && (got > 0 || diff > leastRest*float64(e.opts.Period)) {
			t.Errorf("thread %d ran %v, its samples stand for %v", tid, time.Duration(want), time.Duration(got))
		}
	}
	percent := func(a amount) float64 { return 100 * float64(a.weight) / float64(all) }
	out := 100 - percent(sink.in)
	truth := 100 - part/10
	t.Logf("%d samples where %d periods were run, for %v of %v: %d in work %.1f %% (%.1f), %d elsewhere %.1f %%, %d asleep %.1f %%, %d nowhere %.1f %%; %d at the end; %v a sample; %+v",
		sink.samples, ran/uint64(e.opts.Period), time.Duration(all), time.Duration(ran), sink.in.samples, percent(sink.in), part/10, sink.elsewhere.samples, percent(sink.elsewhere),
		sink.asleep.samples, percent(sink.asleep), sink.nowhere.samples, percent(sink.nowhere), sink.more, own/time.Duration(max(sink.samples, 1)), e.Stops())
	if diff := math.Abs(float64(all) - float64(ran)); diff > 0.02*float64(ran) {
		t.Errorf("samples stand for %v, the threads ran %v", time.Duration(all), time.Duration(ran))
	}
	asked, taken := float64(ran)/float64(e.opts.Period), float64(sink.samples-sink.nowhere.samples)
	if said := len(e.Notes()) > 0; said && taken > asked || !said && taken < 0.85*asked {
		t.Errorf("%.0f samples where %.0f were asked for, and it says %q", taken, asked, e.Notes())
	}
	if percent(sink.nowhere) > 50 {
		fixture.NotPermitted(t, "candid was too late for every turn of most threads: %+v", e.Stops())
	}
	// Time that is reported as unknown is not in a wrong place. The rest may be wrong by chance up
	// to this much, given the weights.
	p0 := truth/100 + 0.03
	chance := 4 * math.Sqrt(p0*(1-p0)*sink.squares) / float64(all)
	if wrong := out - percent(sink.nowhere); wrong > 100*(p0+chance) {
		t.Errorf("%.1f %% of the time is told to be outside of work, where %.1f %% is", wrong, truth)
	}
}
