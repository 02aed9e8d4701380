package dotnet_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/oracle"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestOracle single-steps a thread that runs managed code of all kinds, and compares each caller
// that a walk finds with a shadow stack of the calls that were made. CANDID_ORACLE is the number of
// instructions of each configuration, CANDID_ORACLE_SEED selects the same moments to begin at.
func TestOracle(t *testing.T) {
	if testing.Short() {
		t.Skip("the oracle steps programs for minutes; -short leaves it out")
	}
	var total atomic.Int64
	t.Cleanup(func() { t.Logf("%d instructions compared in all", total.Load()) }) // when all of them have ended
	for _, major := range fixture.DotNets {
		assembly := fixture.CSharp(t, major, "testdata/Steps.cs")
		for _, c := range configurations {
			if c.full && (!c.code || major != 9) && !fixture.Full(t) {
				continue
			}
			t.Run(fmt.Sprintf("%d %s", major, c.name), func(t *testing.T) {
				t.Parallel()
				total.Add(int64(stepThrough(t, major, assembly, c.env)))
			})
		}
	}
}

// stepped is a thread under the oracle.
type stepped struct {
	t     *testing.T
	tr    *oracle.Tracer
	p     *attach.Process
	snap  capture.Snapshot
	stack walk.Stack
	named []symbol.Frame

	compared, whole, wrong, unknown int
	kinds                           [walk.NumKinds]int
	unproved                        map[string]int
}

func stepThrough(t *testing.T, major int, assembly string, env []string) int {
	steps := 4000
	if fixture.Full(t) {
		steps = 40000
	}
	if n, err := strconv.Atoi(os.Getenv("CANDID_ORACLE")); err == nil {
		steps = n
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("CANDID_ORACLE_SEED"), 10, 64); err == nil {
		seed = n
	}
	target := dotnet{major: major}.start(t, assembly, env, "1500")
	p, err := attach.Open(target.PID(), native.NewFiles())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	threads, err := p.Target.Threads()
	if err != nil {
		t.Fatal(err)
	}
	tid := 0
	for _, th := range threads {
		if th.Name == "stepped" {
			tid = int(th.TID)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tr, err := oracle.Attach(tid)
	if errors.Is(err, os.ErrPermission) && os.Getuid() != 0 {
		t.Skipf("cannot trace a thread here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Detach()
	s := &stepped{t: t, tr: tr, p: p, unproved: map[string]int{}}
	chance := rand.New(rand.NewPCG(seed, 1))
	end := time.Now().Add(25 * time.Second)
	if fixture.Full(t) {
		end = end.Add(2 * time.Minute)
	}
	for s.compared < steps && s.wrong < 5 && time.Now().Before(end) {
		s.run(1500, end)
		if err := tr.Continue(time.Duration(200+chance.IntN(4000)) * time.Microsecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d callers and %d whole chains compared, %d wrong, %d unknown; kinds %v; unproved %v; seed %d, %d steps",
		s.compared, s.whole, s.wrong, s.unknown, s.kinds, s.unproved, seed, tr.Steps())
	if s.compared < steps/4 {
		fixture.NotPermitted(t, "only %d of %d instructions could be stepped in time", s.compared, steps)
	}
	if s.unknown*1000 > s.compared {
		t.Errorf("at %d of %d instructions no caller was proved", s.unknown, s.compared)
	}
	return s.compared
}

// run steps n instructions of managed code.
func (s *stepped) run(n int, end time.Time) {
	vm := s.p.Runtimes[0].Stepper()
	calls := 0
	for i, all := 0, 0; i < n && all < 4*n && s.wrong < 5 && (all%64 != 0 || time.Now().Before(end)); all++ {
		var err error
		switch {
		case vm.Owns(s.tr.PC()):
			i++
			s.check(i%8 == 0)
			err = s.tr.Step()
		case vm.Owns(s.tr.Executed().PC) && s.tr.InCall():
			if calls++; calls%16 != 0 {
				err = s.tr.StepOut()
				break
			}
			fallthrough
		default:
			err = s.tr.Step()
		}
		if err != nil && !errors.Is(err, oracle.ErrBlocked) {
			s.t.Fatal(err)
		}
	}
}

// check compares a walk with the shadow stack: the innermost caller, or the whole chain.
func (s *stepped) check(whole bool) {
	truth := s.tr.Callers()
	if len(truth) == 0 {
		return
	}
	s.tr.Snapshot(&s.snap, 1<<16)
	s.p.Target.Memory().Invalidate()
	s.p.BeginBatch()
	s.p.Walker.Walk(&s.snap, s.p.Target.Memory(), &s.stack)
	f := s.stack.Frames
	s.compared++
	s.kinds[f[0].Kind]++
	if len(f) < 2 || f[1].Prov == walk.Heuristic {
		s.unknown++
		e := truth[len(truth)-1]
		s.unproved[fmt.Sprintf("%s %x called by %x, %d bytes above sp", s.name(f[0]), s.code(f[0].PC), s.code(e.RA-12), e.SP-s.tr.SP())]++
		return
	}
	n := 1
	if whole {
		n, s.whole = len(truth), s.whole+1
	}
	for i := range n {
		if e := truth[len(truth)-1-i]; i+1 >= len(f) || f[i+1].PC != e.RA {
			s.wrong++
			s.t.Errorf("step %d at %s (%x): caller %d is %s, should be %s; %v", s.tr.Steps(), s.name(f[0]), s.code(f[0].PC), i+1, s.frames(f, i+1), s.name(s.frameAt(e.RA)), s.stack.End)
			return
		}
	}
}

func (s *stepped) frames(f []walk.Frame, i int) string {
	if i >= len(f) {
		return "none"
	}
	return s.name(f[i])
}

// frameAt returns the frame of a return address.
func (s *stepped) frameAt(ra uint64) walk.Frame {
	f, _ := s.p.Native.Frame(ra, walk.ReturnAddress)
	return f
}

func (s *stepped) name(f walk.Frame) string {
	s.named = s.p.Resolve(f, s.named[:0])
	return fmt.Sprintf("%s+%#x", s.named[len(s.named)-1].Function, f.Ref&0xffffffff)
}

func (s *stepped) code(pc uint64) []byte {
	b := make([]byte, 24)
	s.p.Target.Memory().Bytes(pc, b)
	return b
}
