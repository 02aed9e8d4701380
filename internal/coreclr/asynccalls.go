package coreclr

import (
	"encoding/binary"
	"maps"
	"slices"
)

// Bounds of what tasks call.
const (
	maxNodes  = 1 << 20
	maxCalls  = 1 << 20
	maxListed = 1 << 14 // by one task
)

// calls is what tasks call when they have ended, both ways, by addresses.
type calls struct{ to, from map[uint64][]uint64 }

// connect adds what tasks wait for that are no methods: the tasks that call them when they have ended, such
// as the five of a WhenAll. A task for which methods are waited that nothing else waits for, as a WhenAll
// in Task.Wait, is added too. It is false if there was no time for that.
func (g *graph) connect() bool {
	h := g.h
	c := calls{map[uint64][]uint64{}, map[uint64][]uint64{}}
	count := 0
	for _, addr := range slices.Sorted(maps.Keys(h.found.tasks)) {
		if h.over() {
			return false
		}
		called := g.called(h.found.tasks[addr].to)
		if len(called) == 0 {
			continue
		}
		if count += len(called); count > maxCalls {
			h.found.full = true
			break
		}
		c.to[addr] = called
		for _, to := range called {
			c.from[to] = append(c.from[to], addr)
		}
	}
	queue := slices.Sorted(maps.Keys(g.index))
	if !g.addAbove(&queue, c) {
		return false
	}
	for len(queue) > 0 {
		addr := queue[0]
		queue = queue[1:]
		n := g.index[addr]
		if g.nodes[n].Method && !g.nodes[n].Unknown {
			continue
		}
		for _, task := range c.from[addr] {
			if h.over() {
				return false
			}
			_, known := g.index[task]
			t := h.typeAt(h.found.tasks[task].table)
			if len(g.nodes) >= maxNodes || t.bad || !g.stillCalls(task, addr) {
				continue
			}
			to := g.add(object{task, t})
			g.nodes[n].Unknown = false
			g.nodes[n].Awaits = append(g.nodes[n].Awaits, to)
			if !known {
				queue = append(queue, task)
			}
		}
	}
	return true
}

// addAbove adds the tasks that methods call when they have ended, those that these call, and so on, to the
// nodes and to a queue of them.
func (g *graph) addAbove(queue *[]uint64, c calls) bool {
	var up []uint64
	for _, addr := range *queue {
		if g.nodes[g.index[addr]].Method {
			up = append(up, addr)
		}
	}
	for len(up) > 0 {
		if g.h.over() {
			return false
		}
		addr := up[0]
		up = up[1:]
		for _, to := range c.to[addr] {
			if _, known := g.index[to]; known || len(g.nodes) >= maxNodes {
				continue
			}
			if t := g.typeOf(to); t != nil && t.task && t.box == nil && g.stillCalls(addr, to) {
				g.add(object{to, t})
				up, *queue = append(up, to), append(*queue, to)
			}
		}
	}
	return true
}

// stillCalls reports whether a task that was seen has not ended, and calls something when it has.
func (g *graph) stillCalls(task, to uint64) bool {
	h := g.h
	t := h.typeAt(h.found.tasks[task].table)
	b := g.read(task, t, max(h.flags+4, h.next+8))
	if t.bad || b == nil || binary.LittleEndian.Uint32(b[h.flags:])&taskEnded != 0 {
		return false
	}
	next := binary.LittleEndian.Uint64(b[h.next:])
	if next == to {
		return true
	}
	c := g.typeOf(next)
	return c != nil && (slices.Contains(g.listed(next, c), to) || slices.Contains(g.called(next), to))
}

// called returns the tasks and boxes that a continuation stands for: itself, those in a list, or the task
// that a ContinueWith has returned.
func (g *graph) called(addr uint64) []uint64 {
	t := g.typeOf(addr)
	if t == nil {
		return nil
	}
	var out []uint64
	list := g.listed(addr, t)
	if list == nil {
		list = []uint64{addr}
	}
	for _, e := range list {
		et := t
		if e != addr {
			et = g.typeOf(e)
		}
		switch {
		case et == nil:
		case et.task || et.box != nil:
			out = append(out, e)
		case g.typeName(et) == "System.Threading.Tasks.ContinueWithTaskContinuation":
			if task := g.fieldOf(e, et, "m_task"); task != 0 {
				out = append(out, task)
			}
		}
	}
	return out
}

// listed returns the elements of a list of continuations, nil if an object is none.
func (g *graph) listed(addr uint64, t *heapType) []uint64 {
	if t.task || t.box != nil || g.typeName(t) != "System.Collections.Generic.List<object>" {
		return nil
	}
	array, count := g.fieldOf(addr, t, "_items"), min(uint32(g.fieldOf(addr, t, "_size")), maxListed)
	const first = 16 // after the MethodTable and the number of elements
	b := make([]byte, 8*count)
	if array == 0 || g.h.vm.mem.ReadAt(b, array+first) != nil {
		return nil
	}
	out := make([]uint64, count)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return out
}

// fieldOf reads the word of an object at a field; 0 if it has no such field.
func (g *graph) fieldOf(addr uint64, t *heapType, name string) uint64 {
	if t.fields == nil {
		if t.fields = g.h.vm.fieldsOf(t.table); t.fields == nil {
			t.fields = map[string]field{}
		}
	}
	f, ok := t.fields[name]
	if !ok {
		return 0
	}
	v, err := g.h.vm.word(addr + objectHeader + f.off)
	if err != nil {
		return 0
	}
	return v
}
