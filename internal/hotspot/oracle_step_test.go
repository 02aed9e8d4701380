//go:build linux && amd64

package hotspot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/oracle"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// The oracle steps a Java thread one instruction at a time and keeps a shadow
// stack of its calls; at every instruction in the code cache the stepper's answer
// must be the caller that the shadow stack holds. CANDID_ORACLE=full takes many
// more configurations and instructions.

// oracleRun is a configuration of the VM and what is stepped in it.
type oracleRun struct {
	jdk   int
	mode  string
	flags string
	warm  time.Duration // before the first instruction
	steps int           // in all
	full  bool          // only with CANDID_ORACLE=full
}

func (r oracleRun) name() string {
	n := fmt.Sprintf("%d/%s", r.jdk, r.mode)
	if r.flags != "" {
		n += "/" + strings.ReplaceAll(r.flags, " ", "")
	}
	return n
}

// oracleRuns are the configurations of one JDK.
func oracleRuns(jdk int) []oracleRun {
	runs := []oracleRun{
		{jdk, "mixed", "", 3 * time.Second, 16000, false},
		{jdk, "mixed", "-Xint", time.Second, 5000, false},
	}
	add := func(full bool, mode, flags string, jdks ...int) {
		for _, j := range jdks {
			if j == jdk {
				runs = append(runs, oracleRun{jdk, mode, flags, 3 * time.Second, 12000, full})
			}
		}
	}
	add(false, "basic", "-XX:TieredStopAtLevel=1", 8, 17, 25)
	add(false, "poll", "", 11, 27)
	add(false, "mixed", "-XX:+PreserveFramePointer", 17)
	add(false, "mixed", "-XX:+UseZGC", 21)
	add(true, "basic", "-XX:TieredStopAtLevel=1", 11, 21, 27)
	add(true, "poll", "", 8, 17, 21, 25)
	add(true, "basic", "", 8, 11, 17, 21, 25, 27)
	add(true, "intrinsics", "", 8, 11, 17, 21, 25, 27)
	add(true, "mixed", "-XX:+PreserveFramePointer", 8, 11, 21, 25, 27)
	add(true, "mixed", "-XX:+UseZGC", 17, 25, 27)
	add(true, "mixed", "-XX:+UseParallelGC", 8, 11, 17, 21, 25, 27)
	add(true, "mixed", "-XX:+UseShenandoahGC", 17, 21, 25, 27)
	add(true, "basic", "-XX:-UseTLAB", 8, 17, 21, 25, 27)
	add(true, "mixed", "-XX:-SegmentedCodeCache", 11, 25)
	add(true, "mixed", "-XX:+UseCompactObjectHeaders", 25, 27)
	add(true, "mixed", "-XX:-TieredCompilation", 8, 17, 25)
	return runs
}

func jdkTool(t testing.TB, major int, tool string) string {
	return filepath.Join(jdk(t, major), "bin", tool)
}

// compileJava compiles a file of testdata and gives the class path.
func compileJava(t testing.TB, major int, file string) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command(jdkTool(t, major, "javac"), "-encoding", "UTF-8", "-d", dir, file).CombinedOutput()
	if err != nil {
		t.Fatalf("compile %s: %v\n%s", file, err, out)
	}
	return dir
}

// startStepped starts a program and waits until it says that it is ready.
func startStepped(t testing.TB, major int, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(jdkTool(t, major, "java"), args...)
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
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		if sc.Text() == "ready" {
			return cmd
		}
	}
	cmd.Process.Kill()
	t.Skipf("java %v did not start: %s", args, errs.String())
	return nil
}

// threadNamed finds a thread of a process by its name, or by how it begins if
// name ends with *.
func threadNamed(t testing.TB, p *target.Process, name string) int {
	t.Helper()
	for range 100 {
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
	full := os.Getenv("CANDID_ORACLE") == "full"
	classes := compileJava(t, 8, filepath.Join("testdata", "steps", "Steps.java"))
	total := 0
	for _, major := range majors {
		for _, r := range oracleRuns(major) {
			if r.full && !full {
				continue
			}
			if full {
				r.steps *= 5
			}
			t.Run(r.name(), func(t *testing.T) {
				total += runOracle(t, r, classes)
			})
		}
	}
	t.Logf("%d instructions compared in all", total)
	if total < 100000 && !t.Skipped() && !t.Failed() && os.Getenv("CANDID_ORACLE") == "" && ranAll(t) {
		t.Errorf("only %d instructions were compared", total)
	}
}

// ranAll says whether no part of the test was chosen by name.
func ranAll(t *testing.T) bool { return !strings.Contains(flagRun(), "/") }

func flagRun() string { return flag.Lookup("test.run").Value.String() }

// stepped is a Java thread under the oracle, with the VM that it runs in.
type stepped struct {
	t   *testing.T
	vm  *VM
	tr  *oracle.Tracer
	low uint64

	snap  capture.Snapshot
	stack walk.Stack
	c     walk.Cursor

	compared, chains, interpreted int
	wrong                         int
}

func runOracle(t *testing.T, r oracleRun, classes string) int {
	args := []string{"-cp", classes, "-XX:+UnlockExperimentalVMOptions", "-Xmx128m"}
	for i := 1; i <= 8; i++ {
		args = append(args, fmt.Sprintf("-XX:CompileCommand=dontinline,Steps.f%d", i))
	}
	args = append(args, "-XX:CompileCommand=quiet")
	args = append(args, strings.Fields(r.flags)...)
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
	tr, err := oracle.Attach(tid)
	if err != nil {
		t.Skipf("cannot trace a thread here: %v", err)
	}
	defer tr.Detach()
	s := &stepped{t: t, vm: vm, tr: tr}
	const pieces = 8
	for i := 0; i < pieces && s.wrong < giveUp; i++ {
		vm.BeginBatch()
		p.Memory().Invalidate()
		s.run(r.steps/pieces, r.flags == "-Xint")
		if err := tr.Continue(7 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d instructions in generated code compared, %d whole chains (%d instructions in the interpreter), %d wrong", s.compared, s.chains, s.interpreted, s.wrong)
	if s.wrong > 0 {
		t.Fail()
	}
	if s.compared+s.chains < r.steps/10 {
		t.Errorf("only %d comparisons in %d instructions", s.compared+s.chains, r.steps)
	}
	return s.compared + s.chains
}

// giveUp ends a run that is hopeless.
const giveUp = 5

// run steps n instructions in generated code.
func (s *stepped) run(n int, interpreter bool) {
	for i, all := 0, 0; i < n && all < 20*n && s.wrong < giveUp; all++ {
		if s.vm.Owns(s.tr.PC()) {
			i++
			s.check(interpreter || i%8 == 0)
		}
		err := s.tr.Step()
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
	}
	return &s.c
}

// check compares the leaf's caller with the shadow stack, and with whole the
// whole chain. What is cached may be out of date by now, so a wrong answer is
// asked for again in a new batch.
func (s *stepped) check(whole bool) {
	pc := s.tr.PC()
	interpreter := s.vm.inInterpreter(pc)
	if interpreter {
		s.interpreted++
		whole = whole || s.interpreted%4 == 0
	} else if _, ok := s.tr.Caller(); ok && s.vm.find(pc) != nil {
		s.compared++
		if s.wrongCaller() != "" {
			s.vm.BeginBatch()
			if why := s.wrongCaller(); why != "" {
				s.bad("%s", why)
			}
		}
	}
	// Code that C++ called has C++ code below, which is not walked here.
	if c := s.cursor(4096); !whole || !interpreter && (s.vm.Step(c) == walk.Stepped && !s.vm.Owns(c.Regs.PC)) {
		return
	}
	s.chains++
	if s.wrongChain() != "" {
		s.vm.BeginBatch()
		if why := s.wrongChain(); why != "" {
			s.bad("%s", why)
		}
	}
}

// wrongCaller says how the leaf's caller differs from the shadow stack's.
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
	// A c2i adapter moves the return address down to make room for arguments,
	// which then lie where it was. The interpreter's own calls are jumps, so below
	// that the shadow stack says nothing, and the whole chain is compared.
	if n := len(s.tr.Callers()); n > 0 && !s.vm.codeRA(e.RA) {
		if v == walk.Stepped && c.Regs.PC == s.tr.Callers()[n-1].RA {
			return ""
		}
		return s.wrongChain()
	}
	// An nmethod's entry barrier that finds the nmethod gone drops its frame and
	// jumps on to the method's new code: the call of the barrier never returns.
	if n := len(s.tr.Callers()); n > 1 && v == walk.Stepped && s.calledBarrier(e.RA) {
		if next := s.tr.Callers()[n-2]; next.SP == c.Regs.SP()-8 && next.RA == c.Regs.PC {
			return ""
		}
	}
	// C1's exception stub has popped the handler's address and jumps to it: that is
	// where the program goes next, in the method whose call the shadow stack has
	// seen returned, and that method's caller is the shadow stack's.
	if b := s.vm.find(pc); b != nil && v == walk.Stepped && pat("FF E1").at(s.vm.codeOf(b), int(pc-b.codeBegin)) && c.Regs.PC == s.cursor(4096).Regs.R[cpu.RCX] {
		if s.vm.Step(c) == walk.Stepped && c.Regs.PC == e.RA && c.Regs.SP() == e.SP+8 {
			return ""
		}
		return fmt.Sprintf("caller of the exception's handler %#x, shadow says %#x at %#x", c.Regs.PC, e.RA, e.SP)
	}
	// A poll in a loop and an implicit exception enter their stub from a signal's
	// handler, not by a call: the interrupted method is a caller that the shadow
	// stack does not know, and its caller is the shadow stack's.
	if b := s.vm.find(pc); b != nil && (b.kind == blobSafepoint || b.kind == blobRuntimeStub) && v == walk.Stepped && s.vm.validOrPoll(c.Regs.PC) {
		if s.vm.Step(c) == walk.Stepped && c.Regs.PC == e.RA && c.Regs.SP() == e.SP+8 {
			return ""
		}
		return fmt.Sprintf("caller of the interrupted method %#x, shadow says %#x at %#x", c.Regs.PC, e.RA, e.SP)
	}
	return fmt.Sprintf("caller %#x (%v), shadow says %#x at %#x", c.Regs.PC, v, e.RA, e.SP)
}

// validOrPoll says whether pc has a PcDesc or is just behind a poll.
func (vm *VM) validOrPoll(pc uint64) bool {
	e := vm.classify(pc)
	return e != nil && e.how == howFrame && e.blob.kind == blobNMethod && (e.exact || e.poll)
}

// calledBarrier says whether the call that returns to ra was of the entry barrier.
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

// bad reports a wrong answer, with the code around the pc.
func (s *stepped) bad(format string, args ...any) {
	s.wrong++
	pc := s.tr.PC()
	regs := s.tr.Regs()
	var where string
	if b := s.vm.find(pc); b != nil {
		where = fmt.Sprintf("%s (%s) kind %d code+%#x frame %d complete +%#x", b.name, s.methodName(b), b.kind, pc-b.codeBegin, b.frameSize, b.frameComplete-b.codeBegin)
		if b.nm != nil {
			where += fmt.Sprintf(" vep +%#x stubs +%#x", b.nm.verifiedEntry-b.codeBegin, b.nm.stubBegin-b.codeBegin)
		}
	}
	var code [48]byte
	s.tr.Memory().Bytes(pc-24, code[:])
	s.t.Errorf("step %d pc %#x %s\n  rsp %#x rbp %#x rax %#x r13 %#x\n  code % x | % x\n  %s", s.tr.Steps(), pc, where,
		regs.SP(), regs.FP(), regs.R[0], regs.R[13], code[:24], code[24:], fmt.Sprintf(format, args...))
	var stack strings.Builder
	for i := range uint64(12) {
		w, _ := s.tr.Memory().Word(regs.SP() + 8*i)
		fmt.Fprintf(&stack, " %x", w)
	}
	s.t.Logf("  stack%s", stack.String())
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

// frameName is the physical frame's method, or its blob.
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

// walkAll walks on to the end, over native code by the VM's own anchors.
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

// wrongChain walks the whole stack and says where its end differs from what the
// program does: run, f1 … f8.
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
			// The thread may just be between two of the calls, in which case the
			// chain ends early, with the leaf's own helpers.
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
