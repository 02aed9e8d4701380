//go:build linux && amd64

package hotspot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/oracle"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestOracleVirtual steps the carrier of a virtual thread that parks, from JDK 24 on also waits for
// a monitor or in Object.wait, and resumes all the time. At every instruction the chain must reach
// the carrier's first frame, and pass the virtual thread's frames while it works.
func TestOracleVirtual(t *testing.T) {
	if testing.Short() {
		t.Skip("the oracle steps Java VMs for a long time; -short leaves it out")
	}
	steps := 6000
	if fixture.Full(t) {
		steps = 12000
	}
	switch wanted := os.Getenv("CANDID_ORACLE"); {
	case wanted == "full":
		steps = 60000
	case wanted != "":
		steps, _ = strconv.Atoi(wanted)
	}
	for _, major := range fixture.JDKs(t, 21) {
		hows := []string{"park"}
		if major >= 24 {
			hows = append(hows, "monitor", "wait")
		}
		for _, how := range hows {
			for _, flags := range []string{"", "-Xint", "-XX:TieredStopAtLevel=1"} {
				// One JDK has the interpreter and C1 for all.
				if (how != "park" || major != 27) && flags != "" && !fixture.Full(t) {
					continue
				}
				t.Run(fmt.Sprintf("%d/%s/%s", major, how, flags), func(t *testing.T) {
					t.Parallel()
					// A stepped carrier is slow, and the virtual thread then waits elsewhere.
					for range 4 {
						if runVirtualOracle(t, major, how, flags, steps) || t.Failed() {
							return
						}
					}
					// Everything that was compared was right. A stepped carrier is slow, and may
					// wait for work all the time that the virtual thread waits for it.
					fixture.NotPermitted(t, "in four rounds the stepped carrier hardly ever had the virtual thread")
				})
			}
		}
	}
}

// runVirtualOracle returns false if the virtual thread was hardly seen at work.
func runVirtualOracle(t *testing.T, major int, how, flags string, steps int) bool {
	oracles <- struct{}{}
	defer func() { <-oracles }()
	dir := fixture.Classes(t, major, filepath.Join("testdata", "steps", "Virtual.java"))
	args := []string{"-cp", dir, "-Xmx128m", "-Djdk.virtualThreadScheduler.parallelism=1", "-Djdk.virtualThreadScheduler.maxPoolSize=1", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Virtual.*"}
	args = append(args, strings.Fields(flags)...)
	turns := "100" // of its loop, between parking
	if flags == "-Xint" {
		turns = "1000" // parking takes long in the interpreter
	}
	if how != "park" {
		turns = turns[:len(turns)-1] // what matters here is leaving and coming back
	}
	cmd := startStepped(t, major, append(args, "Virtual", turns, how)...)
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	time.Sleep(2 * time.Second)
	vm, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	tid := carrier(t, vm)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tr := trace(t, tid)
	defer tr.Detach()
	s := &stepped{t: t, vm: vm, tr: tr}
	seed := oracleSeed()
	chance := rand.New(rand.NewPCG(seed, 2))
	working, rounds := 0, 0
	least := steps / 50 // of the thread at work, which is not mounted all the time
	limit := stepLimit
	if fixture.Full(t) && os.Getenv("CANDID_ORACLE") == "" {
		limit /= 2
	}
	s.end = time.Now().Add(limit)
	for !s.late() && (s.chains < steps || working < least) && s.chains < 8*steps && s.wrong < giveUp && (working > 0 || s.chains < 4*steps) {
		vm.BeginBatch()
		p.Memory().Invalidate()
		// A carrier that sleeps at the end of each round is stepped along the same way each time.
		// Until the virtual thread was met on it, a round goes further than the one before.
		most := 3000
		if working == 0 {
			most *= rounds + 1
		}
		for n, all := 0, 0; n < most && all < 20*most && s.wrong < giveUp && (all%64 != 0 || !s.late()); all++ {
			var err error
			switch {
			case vm.Owns(tr.PC()):
				n++
				work, why := s.wrongVirtual()
				if why != "" {
					vm.BeginBatch()
					_, why = s.wrongVirtual()
				}
				if why != "" {
					s.bad("%s", why)
				}
				if s.chains++; work {
					working++
				}
				err = tr.Step()
			case vm.Owns(tr.Executed().PC) && tr.InCall():
				err = tr.StepOut()
			default:
				err = tr.Step()
			}
			if err != nil && !errors.Is(err, oracle.ErrBlocked) {
				t.Fatal(err)
			}
		}
		// If other processes compete for the CPU, a few milliseconds may not be enough for the
		// virtual thread to be mounted.
		rounds++
		patience := time.Duration(1)
		if working == 0 {
			patience = time.Duration(min(rounds, 30))
		}
		if err := tr.Continue(patience * time.Duration(100+chance.IntN(3000)) * time.Microsecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d whole chains compared, %d of them of the working virtual thread, %d end where frames are brought back, %d wrong; seed %d, %d steps", s.chains, working, s.between, s.wrong, seed, tr.Steps())
	if s.between > s.chains/10 {
		t.Errorf("%d of %d chains end in the stubs", s.between, s.chains)
	}
	// On a busy machine a sixth is enough.
	if s.late() && s.chains >= steps/6 && working >= least/6 {
		return true
	}
	if s.late() && s.wrong == 0 && (s.chains < steps || working < least) {
		fixture.NotPermitted(t, "%d of %d chains, %d of them of the working thread, could be stepped in %v", s.chains, steps, working, limit)
	}
	if working < least && s.wrong == 0 {
		return false
	}
	if s.chains < steps || working < least {
		t.Errorf("only %d of %d chains, %d of them of the working thread", s.chains, steps, working)
	}
	return true
}

// wrongVirtual reports whether the virtual thread is at work, and returns how the chain differs
// from what it does.
func (s *stepped) wrongVirtual() (working bool, why string) {
	// Code that C++ called has C++ code below, which is not walked here.
	if c := s.cursor(4096); s.vm.Step(c) == walk.Stepped && !s.vm.Owns(c.Regs.PC) {
		return false, ""
	}
	v := s.walkAll()
	var names []string
	for _, f := range s.stack.Frames {
		names = append(names, s.frameName(f))
	}
	all := strings.Join(names, " ")
	// While the stubs bring frames back it cannot be told where each of them is: the stack ends
	// there, and says so.
	if v == walk.Uncopied && strings.HasPrefix(names[len(names)-1], "StubRoutines (cont") {
		s.between++
		return false, ""
	}
	// The carrier's own chain ends in the call stub.
	if !strings.Contains(all, "java/util/concurrent/ForkJoinWorkerThread.run") || !strings.HasPrefix(names[len(names)-1], "StubRoutines") {
		return false, fmt.Sprintf("chain %v does not reach the carrier's end", names)
	}
	if working = strings.Contains(all, "Virtual.work "); working && !strings.Contains(all, "Virtual.work Virtual.g6 Virtual.g5 Virtual.g4 Virtual.g3 Virtual.g2 Virtual.g1 ") {
		return true, fmt.Sprintf("chain %v leaves out callers of the virtual thread", names)
	}
	if n := strings.Count(all, "Virtual.g1 "); n > 1 {
		return working, fmt.Sprintf("chain %v has the virtual thread's frames %d times", names, n)
	}
	return working, ""
}
