package wine

import (
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
)

// fixedCopy is copied of a Windows stack that is too large to be copied whole, and fixedGo of a
// goroutine's, in bytes.
const (
	fixedCopy = 64 << 10
	fixedGo   = 16 << 10
)

// way is the steps of a capture.Follow.
type way []capture.Step

func (w *way) add(s capture.Step) int {
	*w = append(*w, s)
	return len(*w) - 1
}

// load adds a step that loads a word, or else goes to no.
func (w *way) load(dst, src uint8, off uint64, no uint8) int {
	return w.add(capture.Step{Op: capture.OpLoad, Dst: dst, Src: src, Imm: off, No: no})
}

// minus adds steps that set dst to a plus more, minus b.
func (w *way) minus(dst, a, b uint8, more uint64) {
	w.add(capture.Step{Op: capture.OpAdd, Dst: dst, Src: a, Imm: more})
	w.add(capture.Step{Op: capture.OpLess, Dst: dst, Src: b})
}

// unless adds a step that goes to the place that is later given to here if dst is 0.
func (w *way) unless(dst uint8) int { return w.add(capture.Step{Op: capture.OpNotZero, Dst: dst}) }

// count adds a step that goes there if dst is 0 or negative.
func (w *way) count(dst uint8) int { return w.add(capture.Step{Op: capture.OpCount, Dst: dst}) }

// jump adds a step that goes there.
func (w *way) jump() int { return w.add(capture.Step{Op: capture.OpJump}) }

// here makes steps go to the one that is added next.
func (w *way) here(steps ...int) {
	for _, i := range steps {
		(*w)[i].No = uint8(len(*w))
	}
}

// The values that a way works with.
const (
	valThread = iota
	valTEB
	valSelf
	valBase
	valLimit
	valSP
	valRoom
	valFrame
	valFrom
	valSize
	valG
	valM
	valHigh
)

// newWay makes the description: if the stack pointer is not on the Windows stack, the part of that from
// where the last system call was made is copied. So is the frame while a dispatcher of system calls
// fills or leaves it: then rcx is its address, the stack pointer is above it or still on the Windows
// stack, and the return address is nowhere else.
func (p *Process) newWay() *capture.Follow {
	const end = capture.StepsEnd
	var w way
	w.add(capture.Step{Op: capture.OpThread, Dst: valThread, No: end})
	w.load(valTEB, valThread, p.local, end)
	w.load(valSelf, valTEB, tebSelf, end)
	w.add(capture.Step{Op: capture.OpLess, Dst: valSelf, Src: valTEB})
	check := w.unless(valSelf)
	w.add(capture.Step{Op: capture.OpJump, No: end})
	w.here(check)
	w.load(valFrame, valTEB, p.layout.frame, end)
	filling := w.add(capture.Step{Op: capture.OpRegister, Dst: valRoom, Arg: cpu.RCX})
	w.add(capture.Step{Op: capture.OpLess, Dst: valRoom, Src: valFrame})
	is := w.unless(valRoom)
	past := w.jump()
	w.here(is)
	refused := w.add(capture.Step{Op: capture.OpCopy, Dst: valFrame, Arg: p.layout.size})
	w.here(filling, past, refused)
	w.load(valBase, valTEB, tebStackBase, end)
	w.load(valLimit, valTEB, tebStackLimit, end)
	unknown := w.add(capture.Step{Op: capture.OpRegister, Dst: valSP, Arg: cpu.RSP})
	w.minus(valRoom, valBase, valSP, 0)
	above := w.count(valRoom)
	w.minus(valRoom, valSP, valLimit, 1)
	below := w.count(valRoom)
	onIt := w.jump()
	w.here(unknown, above, below)
	noFrame := w.load(valFrom, valFrame, p.layout.rsp, end)
	w.minus(valSize, valBase, valFrom, 0)
	large := w.add(capture.Step{Op: capture.OpCopy, Dst: valFrom, Src: valSize})
	copied := w.jump()
	w.here(large)
	fixed := w.add(capture.Step{Op: capture.OpCopy, Dst: valFrom, Arg: fixedCopy})
	last := []int{onIt, noFrame, copied, fixed}
	if p.goes.slot != 0 {
		w.here(last...)
		w.addGoroutine(p.goes)
	} else {
		for _, i := range last {
			w[i].No = end
		}
	}
	return &capture.Follow{Steps: w}
}
