//go:build linux && amd64

package hotspot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/oracle"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// The oracle single-steps a Java thread and keeps a shadow stack of its calls. At every instruction
// in the code cache the stepper's answer must be the caller on the shadow stack. CANDID_ORACLE=full
// runs many more configurations and instructions; a number runs that many instructions of each
// configuration. CANDID_ORACLE_SEED selects the same moments to start at.

// startStepped starts a program and waits until it reports that it is ready.
func startStepped(t testing.TB, major int, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(fixture.JDKTool(t, major, "java"), args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	const patience = 3 * time.Minute
	begun := time.Now()
	guard := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer guard.Stop()
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		if sc.Text() == "ready" {
			return cmd
		}
	}
	waited := time.Since(begun)
	cmd.Process.Kill()
	cmd.Wait()
	if waited >= patience {
		had := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		if had < waited/2 { // it computes from its start until it is ready
			fixture.NotPermitted(t, "java %v had %v of CPU time in %v and was not ready", args, had, waited)
		}
		t.Fatalf("java %v did not say \"ready\" in %v and %v of CPU time: %s", args, waited, had, errs.String())
	}
	if strings.Contains(errs.String(), "VM option") || strings.Contains(errs.String(), "not supported") {
		t.Skipf("this JVM does not take %v: %s", args, errs.String())
	}
	t.Fatalf("java %v did not start: %s", args, errs.String())
	return nil
}

// trace stops a thread to step it.
func trace(t *testing.T, tid int) *oracle.Tracer {
	t.Helper()
	tr, err := oracle.Attach(tid)
	if errors.Is(err, os.ErrPermission) && os.Getuid() != 0 {
		t.Skipf("cannot trace a thread here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// threadNamed finds a thread of a process by its name, or by a prefix of it if name ends with *.
func threadNamed(t testing.TB, p *target.Process, name string) int {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		threads, err := p.Threads()
		if err != nil {
			t.Fatal(err)
		}
		for _, th := range threads {
			if th.Name == name || strings.HasSuffix(name, "*") && strings.HasPrefix(th.Name, name[:len(name)-1]) {
				return int(th.TID)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("no thread called %q", name)
	return 0
}

func TestOracle(t *testing.T) {
	if testing.Short() {
		t.Skip("the oracle steps Java VMs for minutes; -short leaves it out")
	}
	wanted := os.Getenv("CANDID_ORACLE")
	each, _ := strconv.Atoi(wanted)
	classes := fixture.Classes(t, 8, filepath.Join("testdata", "steps", "Steps.java"))
	var total, skipped atomic.Int64
	t.Cleanup(func() { // when all of them have ended
		t.Logf("%d instructions compared in all", total.Load())
		if total.Load() < 100000 && skipped.Load() == 0 && !t.Failed() && wanted == "" && ranAll(t) {
			t.Errorf("only %d instructions were compared", total.Load())
		}
	})
	for _, major := range fixture.Majors {
		for _, r := range oracleRuns(major) {
			if wanted == "" && !fixture.Full(t) && (r.full || r.mode != "entries" && !slices.Contains(fixture.Representatives, major)) {
				continue
			}
			if each > 0 {
				r.steps = each
			} else if wanted != "" {
				r.steps *= 5
			}
			if wanted == "" && !fixture.Full(t) {
				r.steps = min(r.steps, 17_000) // all of them compare more than 100,000 still
			}
			t.Run(r.name(), func(t *testing.T) {
				t.Parallel() // each waits for its VM at first, and then VM and oracle wait for each other
				defer func() {
					if t.Skipped() {
						skipped.Add(1)
					}
				}()
				total.Add(int64(runOracle(t, r, classes)))
			})
		}
	}
}

// ranAll reports whether no subtest was selected by name.
func ranAll(t *testing.T) bool { return !strings.Contains(flagRun(), "/") }

func flagRun() string { return flag.Lookup("test.run").Value.String() }

// oracleSeed selects the moments at which a thread is stopped and stepped from.
func oracleSeed() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("CANDID_ORACLE_SEED"), 10, 64); err == nil {
		return n
	}
	return uint64(time.Now().UnixNano())
}

// stepped is a Java thread under the oracle, with the VM that it runs in.
type stepped struct {
	t  *testing.T
	vm *VM
	tr *oracle.Tracer

	snap      capture.Snapshot
	stack     walk.Stack
	c         walk.Cursor
	followed  capture.Followed
	left      *int // a register that is to hold the call stub's return address in walks
	leftOnTop bool // so is the word on top of the stack

	instructions                  int // in generated code, with a comparison at each
	compared, chains, interpreted int
	wrong                         int
	outside                       int       // maximum of consecutive instructions of C++ that are stepped
	between                       int       // end where a virtual thread's frames are brought back
	end                           time.Time // of the stepping, however much was compared by then
}

// stepLimit is how long one configuration is stepped at most. A step takes two context switches,
// which is some microseconds, or some milliseconds if other processes compete for the CPU.
const (
	stepLimit = 90 * time.Second
	// fullLimit is the same for each of the some 170 configurations of make test-full, which would take
	// more than half of its hour otherwise. make oracle has no such limit.
	fullLimit = 15 * time.Second
)

// late reports whether the time for stepping is over.
func (s *stepped) late() bool { return !s.end.IsZero() && time.Now().After(s.end) }

// oracles has room for as many VMs with an oracle as there are CPUs. More would compete with each other
// within the time that each has.
var oracles = make(chan struct{}, runtime.NumCPU())

func runOracle(t *testing.T, r oracleRun, classes string) int {
	oracles <- struct{}{}
	defer func() { <-oracles }()
	args := []string{"-cp", classes, "-XX:+UnlockExperimentalVMOptions", "-Xmx128m"}
	for i := 1; i <= 8; i++ {
		args = append(args, fmt.Sprintf("-XX:CompileCommand=dontinline,Steps.f%d", i))
	}
	args = append(args, "-XX:CompileCommand=quiet")
	args = append(args, strings.Fields(renamedIntrinsics(t, r))...)
	cmd := startStepped(t, r.jdk, append(args, "Steps", r.mode)...)
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	time.Sleep(r.warm)
	vm, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	tid := threadNamed(t, p, "stepped")

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tr := trace(t, tid)
	defer tr.Detach()
	s := &stepped{t: t, vm: vm, tr: tr}
	seed := oracleSeed()
	chance := rand.New(rand.NewPCG(seed, 1))
	// Pieces are short and many: one may begin in a C++ function that takes very long to step.
	const piece = 1000
	// In C++ nothing is compared, and in make test little of it is stepped in a row. What it calls
	// back later is only seen by pieces that begin there.
	pieces, outside := 16*r.steps/piece, 10*piece
	if !fixture.Full(t) && os.Getenv("CANDID_ORACLE") == "" {
		pieces, outside = 80*r.steps/piece, 2*piece
	}
	limit := stepLimit
	if fixture.Full(t) && os.Getenv("CANDID_ORACLE") == "" {
		limit = fullLimit
	}
	s.end, s.outside = time.Now().Add(limit), outside
	for i := 0; s.instructions < r.steps && i < pieces && s.wrong < giveUp && !s.late(); i++ {
		vm.BeginBatch()
		p.Memory().Invalidate()
		s.run(piece, r.flags == "-Xint")
		if err := tr.Continue(time.Duration(500+chance.IntN(8000)) * time.Microsecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d instructions in generated code, %d callers and %d whole chains compared (%d instructions in the interpreter), %d wrong; seed %d, %d steps",
		s.instructions, s.compared, s.chains, s.interpreted, s.wrong, seed, tr.Steps())
	if s.wrong > 0 {
		t.Fail()
	}
	if s.late() && s.instructions >= fewest {
		return s.instructions // TestOracle counts how many there are in all
	}
	if s.instructions < r.steps/2 && s.late() {
		fixture.NotPermitted(t, "only %d of %d instructions could be stepped in %v (%d steps in all)", s.instructions, r.steps, limit, tr.Steps())
	}
	if s.instructions < r.steps/2 {
		t.Errorf("only %d of %d instructions compared", s.instructions, r.steps)
	}
	return s.instructions
}

// fewest is how many instructions say something of a configuration when the time is over: a busy
// machine steps a tenth of what a quiet one does.
const fewest = 1000

// giveUp is the number of wrong answers after which a run is ended.
const giveUp = 5

// stepInto is how many calls into the VM's C++ are stepped over for each one that is stepped into:
// the code that it calls back is generated too, but it is mostly C++.
const stepInto = 24

// run steps n instructions in generated code.
func (s *stepped) run(n int, interpreter bool) {
	for i, calls, outside, all := 0, 0, 0, 0; i < n && all < 10*n && outside < s.outside && s.wrong < giveUp && (all%64 != 0 || !s.late()); all++ {
		var err error
		outside++
		switch {
		case s.vm.Owns(s.tr.PC()):
			i++
			outside = 0
			s.check(interpreter || i%8 == 0)
			// These take a frame off for good and build others in its place. Parts of those still
			// hold what was there before.
			b := s.vm.find(s.tr.PC())
			s.tr.StaysPopped = b != nil && (b.kind == blobDeopt || b.kind == blobUncommonTrap)
			err = s.tr.Step()
		case s.vm.Owns(s.tr.Executed().PC) && s.tr.InCall():
			if calls++; calls%stepInto != 0 {
				err = s.tr.StepOut()
				break
			}
			fallthrough
		default:
			err = s.tr.Step()
		}
		if errors.Is(err, oracle.ErrBlocked) {
			continue
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// cursor takes a snapshot and starts a walk of it.
func (s *stepped) cursor(max int) *walk.Cursor {
	s.tr.Snapshot(&s.snap, max)
	s.stack.Reset()
	s.c = walk.Cursor{
		Regs: s.snap.Regs, Leaf: true, Stack: &s.stack, Mem: s.tr.Memory(), TID: uint32(s.tr.TID()),
		Copy: walk.StackCopy{Base: s.snap.StackAddr, Bytes: s.snap.Stack}, High: s.snap.StackTop,
		Regions: s.regions(),
	}
	if s.left != nil {
		s.c.Regs.R[*s.left] = s.vm.callStubReturn
	}
	if s.leftOnTop {
		binary.LittleEndian.PutUint64(s.snap.Stack[s.c.Regs.SP()-s.snap.StackAddr:], s.vm.callStubReturn)
	}
	return &s.c
}

// names returns the names of frames.
func (s *stepped) names(frames []walk.Frame) (names []string) {
	for _, f := range frames {
		names = append(names, s.frameName(f))
	}
	return names
}

// regions returns the regions that an engine copies besides the stack.
func (s *stepped) regions() []capture.Region {
	how := s.vm.Follow()
	if how == nil {
		return nil
	}
	f := &s.followed
	f.Load = func(b []byte, addr uint64) bool { return s.tr.Memory().Bytes(addr, b) }
	f.Register = func(n uint32) (uint64, bool) { return s.snap.Regs.R[n], true }
	f.Thread, _ = s.vm.Threads.ThreadPointer(uint32(s.tr.TID()))
	f.SP, f.Top, f.Most = s.snap.Regs.SP(), s.snap.StackTop, 256<<10
	f.Go(how)
	return f.Regions
}

// check compares the leaf's caller with the shadow stack. With whole, or if the shadow stack knows
// no caller, it compares the whole chain. The cache may be out of date by now, so a wrong answer is
// asked for again in a new batch.
func (s *stepped) check(whole bool) {
	pc := s.tr.PC()
	interpreter := s.vm.inInterpreter(pc)
	compared := false
	if interpreter {
		s.interpreted++
		whole = whole || s.interpreted%4 == 0
	} else if _, ok := s.tr.Caller(); ok && s.vm.find(pc) != nil {
		s.compared++
		compared = true
		if s.wrongCaller() != "" {
			s.vm.BeginBatch()
			if why := s.wrongCaller(); why != "" {
				s.bad("%s", why)
			}
		}
	} else {
		whole = true
	}
	// Code that C++ called has C++ code below, which is not walked here.
	if c := s.cursor(4096); whole && (interpreter || s.vm.Step(c) != walk.Stepped || s.vm.Owns(c.Regs.PC)) {
		s.chains++
		compared = true
		if s.wrongChain() != "" {
			s.vm.BeginBatch()
			if why := s.wrongChain(); why != "" {
				s.bad("%s", why)
			}
		}
	}
	if compared {
		s.instructions++
	}
}

// wrongCaller returns how the leaf's caller differs from the shadow stack's.
func (s *stepped) wrongCaller() string {
	c := s.cursor(4096)
	pc := s.tr.PC()
	v := s.vm.Step(c)
	e, _ := s.tr.Caller()
	if v == walk.Stepped && c.Regs.PC == e.RA {
		return ""
	}
	for _, l := range s.tr.Loose() {
		if v == walk.Stepped && c.Regs.PC == l.RA {
			return ""
		}
	}
	// The call stub's callee returns with rsp at the slot of its own return
	// address if an adapter has aligned the stack.
	if e.RA == s.vm.callStubReturn && s.inCallStub(pc) {
		return ""
	}
	// A c2i adapter moves the return address down to make room for arguments, which then lie where
	// it was. The interpreter's own calls are jumps, so below that the shadow stack says nothing,
	// and the whole chain is compared.
	if n := len(s.tr.Callers()); n > 0 && !s.vm.codeRA(e.RA) {
		if v == walk.Stepped && c.Regs.PC == s.tr.Callers()[n-1].RA {
			return ""
		}
		return s.wrongChain()
	}
	if v == walk.Stepped && s.vm.inInterpreter(c.Regs.PC) && c.Regs.SP()-8 < e.SP && s.tr.SP() <= c.Regs.SP() {
		return s.wrongChain()
	}
	// An nmethod's entry barrier that finds the nmethod gone drops its frame and jumps to the
	// method's new code: the call of the barrier never returns.
	if n := len(s.tr.Callers()); n > 1 && v == walk.Stepped && s.calledBarrier(e.RA) {
		if next := s.tr.Callers()[n-2]; next.SP == c.Regs.SP()-8 && next.RA == c.Regs.PC {
			return ""
		}
	}
	// C1's exception stub has popped the handler's address and jumps to it. The program continues
	// there, in the method whose call the shadow stack has seen return, and that method's caller is
	// the shadow stack's.
	if b := s.vm.find(pc); b != nil && v == walk.Stepped && pat("FF E1").at(s.vm.codeOf(b), int(pc-b.codeBegin)) && c.Regs.PC == s.tr.Regs().R[cpu.RCX] {
		if s.vm.Step(c) == walk.Stepped && c.Regs.PC == e.RA && c.Regs.SP() == e.SP+8 {
			return ""
		}
		return fmt.Sprintf("caller of the exception's handler %#x, shadow says %#x at %#x", c.Regs.PC, e.RA, e.SP)
	}
	// A poll in a loop and an implicit exception enter their stub from a signal handler, not by a
	// call; a method's handlers jump to the blobs for exceptions and deoptimisation. The method is
	// a caller that the shadow stack does not know, and its caller is the shadow stack's.
	if b := s.vm.find(pc); b != nil && enteredAskew[b.kind] && v == walk.Stepped && s.vm.validOrPoll(c.Regs.PC) {
		if s.vm.Step(c) == walk.Stepped && c.Regs.PC == e.RA && c.Regs.SP() == e.SP+8 {
			return ""
		}
		return fmt.Sprintf("caller of the interrupted method %#x, shadow says %#x at %#x", c.Regs.PC, e.RA, e.SP)
	}
	return fmt.Sprintf("caller %#x (%v), shadow says %#x at %#x", c.Regs.PC, v, e.RA, e.SP)
}

// enteredAskew are the kinds of blobs that are entered by other means than calls too.
var enteredAskew = map[blobKind]bool{blobSafepoint: true, blobRuntimeStub: true, blobException: true, blobDeopt: true}

// validOrPoll reports whether pc has a PcDesc, belongs to a deoptimisation handler, or is just
// after a poll.
func (vm *VM) validOrPoll(pc uint64) bool {
	e := vm.classify(pc)
	return e != nil && e.how == howDeopt || e != nil && e.how == howFrame && e.blob.kind == blobNMethod && (e.exact || e.poll)
}

// calledBarrier reports whether the call that returns to ra was one of the entry barrier.
func (s *stepped) calledBarrier(ra uint64) bool {
	var b [5]byte
	if !s.tr.Memory().Bytes(ra-5, b[:]) || b[0] != 0xe8 {
		return false
	}
	return ra+uint64(int64(int32(binary.LittleEndian.Uint32(b[1:])))) == s.vm.stepping.barrier.lo
}

func (s *stepped) inCallStub(pc uint64) bool {
	return s.vm.stepping.callStub.contains(pc)
}

func (s *stepped) methodName(b *blob) string {
	if b.nm == nil {
		return ""
	}
	return s.nameOf(b.nm.methodID)
}

func (s *stepped) nameOf(id uint32) string {
	if int(id) >= len(s.vm.methods.all) || id == 0 {
		return "?"
	}
	m := s.vm.methods.all[id]
	return m.class + "." + m.name
}

// frameName returns the name of the physical frame's method, or of its blob.
func (s *stepped) frameName(f walk.Frame) string {
	switch f.Kind {
	case walk.KindInterpreted:
		return s.nameOf(uint32(f.Ref >> 32))
	case walk.KindNative:
		return "native"
	}
	if b := s.vm.find(f.PC); b != nil {
		if b.nm != nil {
			return s.methodName(b)
		}
		return b.name
	}
	return "?"
}

// walkAll walks to the end, over native code with the help of the VM's own anchors.
func (s *stepped) walkAll() walk.Verdict {
	c := s.cursor(1 << 16)
	for range 1000 {
		v := s.vm.Step(c)
		if v == walk.NotMine || v == walk.Stuck {
			if !s.vm.Resume(c) {
				return v
			}
			continue
		}
		if v != walk.Stepped {
			return v
		}
		c.Depth++
	}
	return walk.Stuck
}

// wrongChain walks the whole stack and returns where its end differs from what the program does:
// run, f1 … f8.
func (s *stepped) wrongChain() string {
	s.walkAll()
	var names []string
	for _, f := range s.stack.Frames {
		if n := s.frameName(f); n != "" {
			names = append(names, n)
		}
	}
	want := []string{"StubRoutines", "java/lang/Thread.run", "Steps.run", "Steps.f1", "Steps.f2", "Steps.f3", "Steps.f4", "Steps.f5", "Steps.f6", "Steps.f7", "Steps.f8"}
	i := len(names) - 1
	for k := 0; k < len(want) && i >= 0; i-- {
		switch {
		case strings.HasPrefix(names[i], want[k]):
			k++
		case names[i] == "java/lang/Thread.runWith":
		default:
			// The thread may be between two of the calls; the chain then ends early, with the
			// leaf's own helpers.
			if i > 2 || k < 2 {
				return fmt.Sprintf("chain %v differs at %q, wanted %s", names, names[i], want[k])
			}
		}
	}
	if len(names) < 3 {
		return fmt.Sprintf("chain %v is short", names)
	}
	return ""
}
