package wine

import (
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/golang"
)

// goroutines says where a Go program for Windows has the goroutine that a thread runs: its calls of
// Windows are made on the thread's own stack, while its own waits.
type goroutines struct {
	slot  uint64 // offset in the thread's block of the address of the g that the thread runs; 0: not known
	curg  uint64 // offset in struct m of the current goroutine
	tries int
	next  time.Time // not to be looked for before
}

// Bounds of the search for a thread that runs a goroutine.
const (
	mostGoTries = 100
	goPause     = 100 * time.Millisecond
)

// LearnGo is called when the program is known to run Go code. From then on Follow describes where
// goroutines' stacks are too, if that can be found out now or by a later call.
func (p *Process) LearnGo() {
	g := &p.goes
	now := time.Now()
	if g.slot != 0 || g.tries == mostGoTries || now.Before(g.next) {
		return
	}
	g.next = now.Add(goPause)
	if g.tries++; g.tries%10 == 1 {
		p.readThreads() // some may be new
	}
	mem := memoryOf{p}
	for _, thread := range p.bases {
		t, ok := golang.FindThread(mem, p.word(thread+p.local))
		if !ok {
			continue
		}
		if g.curg, ok = t.FindCurrent(mem); ok {
			g.slot = t.Slot
			p.follow = p.newWay()
			return
		}
	}
}

// memoryOf reads the process.
type memoryOf struct{ p *Process }

// Bytes implements golang.Memory.
func (m memoryOf) Bytes(addr uint64, b []byte) bool {
	return m.p.target.Memory().ReadAt(b, addr) == nil
}

// addGoroutine adds the steps that copy the stack of the goroutine that the thread runs, from where it
// will go on, unless the stack pointer is on it. The copy begins a word below.
func (w *way) addGoroutine(p goroutines) {
	const end = capture.StepsEnd
	w.load(valG, valTEB, p.slot, end)
	w.load(valG, valG, 0, end)
	w.load(valM, valG, golang.GM, end)
	w.load(valG, valM, p.curg, end)
	w.load(valRoom, valG, golang.GM, end)
	w.add(capture.Step{Op: capture.OpLess, Dst: valRoom, Src: valM})
	own := w.unless(valRoom)
	w.add(capture.Step{Op: capture.OpJump, No: end})
	w.here(own)
	w.load(valFrom, valG, golang.GSP, end)
	w.add(capture.Step{Op: capture.OpNotZero, Dst: valFrom, No: end})
	w.load(valHigh, valG, golang.GHigh, end)
	unknown := w.add(capture.Step{Op: capture.OpRegister, Dst: valSP, Arg: cpu.RSP})
	w.load(valLimit, valG, golang.GLow, end)
	w.minus(valRoom, valHigh, valSP, 0)
	above := w.count(valRoom)
	w.minus(valRoom, valSP, valLimit, 1)
	below := w.count(valRoom)
	w.add(capture.Step{Op: capture.OpJump, No: end})
	w.here(unknown, above, below)
	w.add(capture.Step{Op: capture.OpAdd, Dst: valFrom, Src: valFrom, Imm: ^uint64(7)})
	w.minus(valSize, valHigh, valFrom, 0)
	large := w.add(capture.Step{Op: capture.OpCopy, Dst: valFrom, Src: valSize})
	w.add(capture.Step{Op: capture.OpJump, No: end})
	w.here(large)
	w.add(capture.Step{Op: capture.OpCopy, Dst: valFrom, Arg: fixedGo, No: end})
}
