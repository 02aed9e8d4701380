package winsuspend

import (
	"bytes"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/golang"
	"github.com/candid-profiler/candid/internal/winsys"
)

// goThread is what is known of a thread that runs Go code.
type goThread struct {
	goes  bool   // a sample was on a goroutine
	m     uint64 // address of its struct m, 0: not known
	tries int    // how often m was looked for
}

// goProcess is what is known of a process that runs Go code.
type goProcess struct {
	runsGo  bool
	looked  bool   // whether its program is Go's
	curg    uint64 // offset in a struct m of the goroutine that its thread runs, 0: not known
	guesses int    // how often that was looked for
}

// Bounds of the searches, which are made again as long as nothing is found.
const (
	mostTries   = 16
	mostGuesses = 256
)

// Offsets in a struct g, for stopThread.
const (
	goLow, goHigh = golang.GLow, golang.GHigh
	goM           = golang.GM
	goSP, goPC    = golang.GSP, golang.GPC
	goBytes       = golang.GBytes
)

// goProgram reports whether the process runs Go code: a sample was in it, or the program's code begins
// with the mark that Go's linker puts there (cmd/go/internal/buildid).
func (p *process) goProgram() bool {
	if !p.looked && !p.runsGo {
		p.looked = true
		mark, first := []byte("\xff Go build ID: "), make([]byte, 4096)
		const codeAt = 0x1000 // where all linkers put the first section
		if base := winsys.ImageBase(p.handle); base != 0 && winsys.ReadMemory(p.handle, base+codeAt, first) {
			p.runsGo = bytes.Contains(first, mark)
		}
	}
	return p.runsGo
}

// findM finds the thread's struct m, which it keeps, and where the current goroutine is in one, so that
// a goroutine whose call runs on the thread's own stack can be copied in the same stop.
func (th *thread) findM() {
	p := th.proc
	if th.m != 0 && p.curg != 0 || th.teb == 0 || th.tries == mostTries || p.guesses == mostGuesses || !p.goProgram() {
		return
	}
	if th.m == 0 {
		th.tries++
	}
	mem := processMemory(p.handle)
	t, ok := golang.FindThread(mem, th.teb)
	if !ok {
		return
	}
	th.m = t.M
	if p.curg == 0 {
		p.guesses++
		p.curg, _ = t.FindCurrent(mem)
	}
}

// goroutineStack returns the bounds of the goroutine's stack that the thread was on, ok if it ran Go
// code: what it runs is then in a register.
func (th *thread) goroutineStack(regs *cpu.Registers) (low, high uint64, ok bool) {
	g, ok := golang.ReadG(processMemory(th.proc.handle), regs.R[cpu.R14])
	return g.Low, g.High, ok && regs.SP() > g.Low && regs.SP() < g.High
}

// onGoroutine notes the goroutine's stack that the thread was on, and reports whether the thread has
// to be copied again: it was not known that this stack is there, or where it ends. Goroutines come and
// go, and their stacks are moved.
func (th *thread) onGoroutine(t *taken) bool {
	low, high, ok := th.goroutineStack(&t.regs)
	if !ok || t.top == high {
		return false
	}
	th.goes, th.proc.runsGo = true, true
	kept := 0
	for _, s := range th.stacks[:th.nstacks] {
		if s[1] <= low || s[0] >= high {
			th.stacks[kept] = s
			kept++
		}
	}
	if kept < th.nstacks {
		th.nstacks, th.next = kept, 0
	}
	th.addStack(low, high)
	return true
}
