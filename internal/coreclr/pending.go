package coreclr

import (
	"errors"
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/clrgc"
)

// AsyncOptions bound PendingAsync and tell it what the collector does.
type AsyncOptions struct {
	Time  time.Duration // for all of it
	Bytes uint64        // of the heap that are read, also if some are read several times
	// Stopped reports whether to give up before; nil: never.
	Stopped func() bool
	// Quiet returns what changes whenever a collection begins or ends, and an error that wraps clrgc.ErrBusy
	// while the program stands still for one.
	Quiet func() (clrgc.Mark, error)
}

// Async are the asynchronous methods that have begun and wait, and what they wait for. It is true of one
// moment if Missing is empty; otherwise each of them was there at some moment of the look.
type Async struct {
	Nodes   []AsyncNode
	Pending int      // how many Nodes are methods
	Missing []string // why there may be more of them
	Heap    uint64   // bytes of the heap in which they may be
	Read    uint64   // bytes of it that were read
}

// AsyncNode is a method that waits, or an object that a method waits for.
type AsyncNode struct {
	Name   string // of the method, or of the object's type
	Raw    string // of the method's state machine
	Detail string // what is known of a task besides; "" for nothing
	Method bool
	State  int32   // <>1__state of a method: which of its awaits it is at
	Awaits []int32 // indices of what it waits for
	// Unknown says that what a method waits for is not known: a task, or another object, refers to it, but it
	// keeps no reference.
	Unknown bool
	Then    string // type of what is called when it has ended, if that is none of the Nodes; "" for nothing
}

// mostLooks bounds how often the heap is read because the collector ran meanwhile.
const mostLooks = 20

// PendingAsync looks for asynchronous methods that are pending. A method that waits is on no stack: it is an
// object of the heap, which refers to what it waits for. So all objects that may be such are looked at.
// Nothing is stopped for that: the whole look counts as one of a moment if no collection, which moves objects,
// came during it. Each method that is returned was read again in the end: its object has its type, a state in
// which it waits, and refers to itself. The error wraps ErrHeap.
func (vm *VM) PendingAsync(o AsyncOptions) (*Async, error) {
	if err := vm.heapKnown(); err != nil {
		return nil, err
	}
	h := newHeapReader(vm, time.Now().Add(o.Time), o.Bytes)
	h.stopped = o.Stopped
	if h.free == 0 {
		return nil, fmt.Errorf("CoreCLR %s: what is between objects is not known: %w", vm.version, ErrHeap)
	}
	var best *graph
	var size uint64
	var lastErr error
	for look := 0; look < mostLooks; look++ {
		before, err := o.quiet(h)
		if err != nil {
			lastErr = err
			break
		}
		g, heap, err := h.look()
		if err != nil {
			lastErr = err
			if h.over() {
				break
			}
			continue // it may have been read while a collection changed it
		}
		after, err := o.quiet(h)
		g.moved = err != nil || after != before
		if size = heap; best == nil || !g.moved && g.broken == 0 || len(g.boxes) >= len(best.boxes) {
			best = g
		}
		if !g.moved && g.broken == 0 || g.why != stopNot {
			break
		}
	}
	if best == nil {
		if !errors.Is(lastErr, ErrHeap) {
			lastErr = fmt.Errorf("%w: %w", lastErr, ErrHeap)
		}
		return nil, lastErr
	}
	return &Async{Nodes: best.nodes, Pending: len(best.boxes), Missing: best.missing(o), Heap: size, Read: h.read}, nil
}

// quiet waits until the program does not stand still for a collection.
func (o *AsyncOptions) quiet(h *heapReader) (clrgc.Mark, error) {
	for {
		m, err := o.Quiet()
		if err == nil || !errors.Is(err, clrgc.ErrBusy) || h.over() {
			return m, err
		}
		time.Sleep(time.Millisecond)
	}
}

// look reads the heap once, and proves what was found in this and the looks before.
func (h *heapReader) look() (*graph, uint64, error) {
	m, err := h.vm.heap()
	if err != nil {
		return nil, 0, err
	}
	g := &graph{h: h, index: map[uint64]int32{}, machines: map[uint64]int32{}, cut: m.cut, regions: len(m.regions)}
	g.broken, g.why = h.pass(m)
	if !g.prove() {
		g.why = stopTime
	}
	return g, m.size, nil
}

// missing returns why there may be more than was found.
func (g *graph) missing(o AsyncOptions) (out []string) {
	switch g.why {
	case stopTime:
		if o.Stopped != nil && o.Stopped() {
			out = append(out, "the look was interrupted")
		} else {
			out = append(out, fmt.Sprintf("the time for it, %v, is over", o.Time))
		}
	case stopBytes:
		out = append(out, fmt.Sprintf("the bound of %d bytes of heap was reached", o.Bytes))
	}
	if g.moved {
		out = append(out, "the garbage collector ran whenever the heap was read")
	}
	if g.broken > 0 {
		out = append(out, fmt.Sprintf("%d of %d regions of the heap changed while they were read", g.broken, g.regions))
	}
	if g.cut {
		out = append(out, fmt.Sprintf("the heap has more than %d regions", maxRegions))
	}
	if g.h.found.full || len(g.nodes) >= maxNodes {
		out = append(out, fmt.Sprintf("there are more than %d methods, or %d tasks that something awaits", maxBoxes, maxTasks))
	}
	if g.strange > 0 {
		out = append(out, fmt.Sprintf("%d objects hold asynchronous methods of a form that is not known", g.strange))
	}
	return out
}
