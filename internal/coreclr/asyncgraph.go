package coreclr

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/symbol"
)

// graph is what waits for what, of which each part was read again after it was found.
type graph struct {
	h     *heapReader
	nodes []AsyncNode
	index map[uint64]int32 // of nodes, by the address of the object
	boxes []boxNode
	// machines leads from state machines that are objects of their own to their boxes' nodes: who awaits an
	// asynchronous iterator refers to that.
	machines map[uint64]int32
	strange  int // boxes whose fields are not known
	broken   int // regions that were not understood
	regions  int
	cut      bool
	moved    bool // a collection came
	why      stop

	buf [maxBox]byte
}

// object is an object of the heap.
type object struct {
	addr uint64
	t    *heapType
}

// boxNode is a node that is a method.
type boxNode struct {
	node   int32
	awaits object // its address is 0 if that is not known
}

// Flags of Task.m_stateFlags (src/libraries/System.Private.CoreLib/src/System/Threading/Tasks/Task.cs).
const (
	taskPromise = 0x00000400 // it has no delegate; somebody sets its result
	taskStarted = 0x00010000
	taskInvoked = 0x00020000 // its delegate runs, or has run
	taskEnded   = 0x01600000 // ran to completion, faulted or cancelled
)

// prove reads again all boxes that were seen, and what they wait for. It is false if there was no time
// for that.
func (g *graph) prove() bool {
	h := g.h
	for i, addr := range slices.Sorted(maps.Keys(h.found.boxes)) {
		if i&63 == 0 && h.over() {
			return false
		}
		t := h.found.boxes[addr]
		switch {
		case !t.box.unknown:
			if !g.proveBox(addr, t) {
				delete(h.found.boxes, addr)
			}
		case g.read(addr, t, objectHeader) != nil:
			g.strange++
		}
	}
	for i := 0; i < len(g.boxes) && i < maxBoxes; i++ { // boxes that are younger than the look at the heap
		if i&63 == 0 && h.over() {
			return false
		}
		w := g.boxes[i].awaits
		if _, known := g.index[w.addr]; w.addr != 0 && !known && w.t.box != nil && !w.t.box.unknown {
			g.proveBox(w.addr, w.t)
		}
	}
	for _, b := range g.boxes {
		if b.awaits.addr == 0 {
			continue
		}
		to, ok := g.machines[b.awaits.addr]
		if !ok {
			to = g.add(b.awaits)
		}
		g.nodes[b.node].Awaits = []int32{to}
	}
	return g.connect()
}

// read reads an object of a type, at least so many bytes; nil if it is not there.
func (g *graph) read(addr uint64, t *heapType, size uint64) []byte {
	if addr == 0 || addr&7 != 0 || size < 8 || size > uint64(len(g.buf)) {
		return nil
	}
	b := g.buf[:size]
	if g.h.vm.mem.ReadAt(b, addr) != nil || binary.LittleEndian.Uint64(b)&^7 != t.table {
		return nil
	}
	return b
}

// boxState is what a box says of itself.
type boxState struct {
	waits  bool
	state  int32
	awaits uint64 // address of what it waits for; 0: not known
	then   uint64 // address of what is called when it has ended; 0: nothing
	// machine is the address of its state machine, 0 if that is a part of it.
	machine uint64
}

// readBox reads a box as it is now.
func (g *graph) readBox(addr uint64, t *heapType) (s boxState) {
	le := binary.LittleEndian
	b := g.read(addr, t, t.base-objectHeader)
	if b == nil {
		return s
	}
	if h := g.h; t.task && h.flags != 0 {
		if h.flags+4 > uint64(len(b)) || h.next+8 > uint64(len(b)) || le.Uint32(b[h.flags:])&taskEnded != 0 {
			return s
		}
		s.then = le.Uint64(b[h.next:])
	}
	if t.box.machine != 0 {
		machine := g.h.typeAt(t.box.machine)
		if t.box.at+8 > uint64(len(b)) || machine.bad {
			return s
		}
		s.machine = le.Uint64(b[t.box.at:])
		if b = g.read(s.machine, machine, t.box.size); b == nil {
			return s
		}
	}
	if s.state, s.waits = t.box.waits(b, addr); !s.waits {
		return s
	}
	for _, words := range t.box.awaiters {
		// The first reference of an awaiter is the task, or what takes its place. An awaiter is cleared
		// when the method goes on.
		for _, at := range words {
			if at+8 > uint64(len(b)) {
				break
			}
			if v := le.Uint64(b[at:]); v != 0 {
				if s.awaits != 0 {
					s.awaits = 0
					return s // it cannot be told which
				}
				s.awaits = v
				break
			}
		}
	}
	return s
}

// proveBox adds a box, if it waits. It is read before and after what it waits for is looked at: as long as it
// refers to that, no collection has moved it.
func (g *graph) proveBox(addr uint64, t *heapType) bool {
	s := g.readBox(addr, t)
	if !s.waits {
		return false
	}
	awaits, then := object{s.awaits, g.typeOf(s.awaits)}, g.typeOf(s.then)
	again := g.readBox(addr, t)
	if !again.waits || again.state != s.state {
		return false // it has gone on
	}
	if again.awaits != s.awaits || awaits.t == nil {
		awaits = object{}
	}
	n := AsyncNode{Name: t.box.name, Raw: t.box.raw, Method: true, State: s.state, Unknown: awaits.addr == 0}
	if again.then == s.then && then != nil {
		n.Then = g.typeName(then)
	}
	g.index[addr] = int32(len(g.nodes))
	if s.machine != 0 && again.machine == s.machine {
		g.machines[s.machine] = int32(len(g.nodes))
	}
	g.boxes = append(g.boxes, boxNode{node: int32(len(g.nodes)), awaits: awaits})
	g.nodes = append(g.nodes, n)
	return true
}

// typeOf returns the type of the object at an address, nil if there is none.
func (g *graph) typeOf(addr uint64) *heapType {
	if addr == 0 || addr&7 != 0 {
		return nil
	}
	table, err := g.h.vm.word(addr)
	if err != nil {
		return nil
	}
	if t := g.h.typeAt(table &^ 7); !t.bad && !t.free {
		return t
	}
	return nil
}

// typeName returns the name of a type.
func (g *graph) typeName(t *heapType) string {
	if t.name == "" {
		t.name = symbol.Printable(g.h.vm.typeName(t.table, 0))
	}
	return t.name
}

// add adds an object that something waits for, unless it is there already, and returns its index.
func (g *graph) add(o object) int32 {
	if i, ok := g.index[o.addr]; ok {
		return i
	}
	n := AsyncNode{Name: g.typeName(o.t)}
	switch {
	case o.t.box != nil:
		n.Name, n.Raw, n.Detail = o.t.box.name, o.t.box.raw, "does not wait now"
	case o.t.task && g.h.flags != 0:
		n.Detail = g.detail(o)
	}
	i := int32(len(g.nodes))
	g.index[o.addr] = i
	g.nodes = append(g.nodes, n)
	return i
}

// detail says what is known of a task by its flags.
func (g *graph) detail(o object) string {
	b := g.read(o.addr, o.t, g.h.flags+4)
	if b == nil {
		return ""
	}
	class, _, _ := strings.Cut(g.typeName(o.t), "<")
	switch f := binary.LittleEndian.Uint32(b[g.h.flags:]); {
	case f&taskEnded != 0:
		return "ended"
	case class != taskClass:
	case f&taskPromise != 0:
		return "promise"
	case f&taskInvoked != 0:
		return "runs"
	case f&taskStarted != 0:
		return "queued"
	}
	return ""
}
