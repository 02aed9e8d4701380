package threads

import (
	"encoding/binary"
	"slices"

	"github.com/candid-profiler/candid/internal/hotspot/metadata"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// namesAtOnce is how many threads' names are read together; it bounds the memory for that.
const namesAtOnce = 1024

// readNames reads the names of all threads, and where their objects are. They are read together,
// because each name takes ten reads one by one. Names that cannot be read reliably this way,
// because the collector moved something meanwhile, are left to be read singly.
func (c *Dump) readNames() {
	for part := range slices.Chunk(c.threads, namesAtOnce) {
		n := nameReader{ts: c.ts, threads: part}
		if !n.objects() {
			continue
		}
		for i, name := range n.strings() {
			if name.ok {
				c.names[part[i].TID] = name.text
			}
		}
	}
}

// nameReader reads the names of some threads.
type nameReader struct {
	ts      *Threads
	threads []dumpedThread
	layout  *objectLayout
	refs    []uint64 // address of the reference to each thread's name; 0: not known
}

type readName struct {
	text string
	ok   bool
}

// requests makes reads of size bytes at an offset from each address but 0.
func requests(addrs []uint64, offset uint64, size int) (reqs []target.Read, b []byte) {
	reqs, b = make([]target.Read, len(addrs)), make([]byte, size*len(addrs))
	for i, a := range addrs {
		if a != 0 {
			reqs[i] = target.Read{Addr: a + offset, Buf: b[size*i:][:size:size]}
		}
	}
	return reqs, b
}

// words reads the word at each address but 0; words that cannot be read are 0.
func (ts *Threads) words(addrs []uint64) []uint64 {
	reqs, b := requests(addrs, 0, 8)
	ts.vm.Mem.ReadV(reqs)
	out := make([]uint64, len(addrs))
	for i := range reqs {
		if addrs[i] != 0 && reqs[i].OK {
			out[i] = vmstructs.Word(b, 8*uint64(i))
		}
	}
	return out
}

// oops returns the current addresses of the threads' objects.
func (n *nameReader) oops() []uint64 {
	out := make([]uint64, len(n.threads))
	for i := range out {
		out[i] = n.threads[i].object
	}
	if n.ts.heap.Handles {
		out = n.ts.words(out)
	}
	for i := range out {
		out[i] = n.ts.heap.Address(out[i])
	}
	return out
}

// objects finds the threads' objects, and the references to their names.
func (n *nameReader) objects() bool {
	n.ts.heap.Refresh()
	oops := n.oops()
	for _, oop := range oops {
		if oop == 0 {
			continue
		}
		if n.layout = n.ts.threadLayout(oop); n.layout.ok {
			break
		}
	}
	if n.layout == nil || !n.layout.ok || n.layout.name.Signature != "Ljava/lang/String;" {
		return false
	}
	n.refs = n.nameRefs(oops)
	for i, ref := range n.refs {
		if ref != 0 {
			n.threads[i].oop = oops[i]
		}
	}
	return true
}

// nameRefs reads the references to the threads' names, 0 if an object is not the thread's.
func (n *nameReader) nameRefs(oops []uint64) []uint64 {
	f, h := n.layout, n.ts.heap
	reqs, b := requests(oops, 0, f.span)
	n.ts.vm.Mem.ReadV(reqs)
	out := make([]uint64, len(oops))
	for i := range oops {
		object := b[f.span*i:][:f.span]
		if oops[i] == 0 || !reqs[i].OK || vmstructs.Word(object, f.eetop) != n.threads[i].Addr {
			continue
		}
		if f.holder != vmstructs.Absent {
			n.threads[i].holder, _ = h.ReferenceIn(object, f.holder)
		}
		out[i], _ = h.ReferenceIn(object, f.name.Offset)
	}
	return out
}

// strings reads the names that the references lead to.
func (n *nameReader) strings() []readName {
	out := make([]readName, len(n.threads))
	arrays, latin := n.arrays()
	reqs, sizes := requests(arrays, n.ts.heap.ArrayLength(), 4)
	n.ts.vm.Mem.ReadV(reqs)
	data := make([]target.Read, len(arrays))
	for i, a := range arrays {
		if length := binary.LittleEndian.Uint32(sizes[4*i:]); a != 0 && reqs[i].OK && length <= metadata.MaxChars {
			data[i] = target.Read{Addr: a + n.ts.heap.ArrayData(), Buf: make([]byte, n.ts.heap.CharBytes(length, latin[i]))}
		} else {
			arrays[i] = 0
		}
	}
	n.ts.vm.Mem.ReadV(data)
	// The references to objects that the collector has moved meanwhile are up to date.
	refs := n.nameRefs(n.oops())
	again, _ := n.arrays()
	for i := range out {
		if arrays[i] != 0 && data[i].OK && refs[i] == n.refs[i] && again[i] == arrays[i] {
			out[i] = readName{metadata.DecodeChars(data[i].Buf, latin[i]), true}
		}
	}
	return out
}

// arrays returns the arrays that hold each name's characters, and whether they are Latin-1.
func (n *nameReader) arrays() (arrays []uint64, latin []bool) {
	ts := n.ts
	arrays, latin = make([]uint64, len(n.refs)), make([]bool, len(n.refs))
	var value, coder metadata.Field
	klass := uint64(0)
	for _, ref := range n.refs {
		if ref == 0 {
			continue
		}
		var ok bool
		if klass, ok = ts.heap.KlassOf(ref); !ok || ts.heap.ClassName(klass) != "java/lang/String" {
			continue
		}
		if value, ok = ts.heap.FieldOf(ref, "value"); ok {
			coder, _ = ts.heap.FieldOf(ref, "coder")
			break
		}
	}
	if value.Signature == "" || value.Signature == "[B" && coder.Signature != "B" {
		return arrays, latin
	}
	span := spanOf([]uint64{value.Offset, coder.Offset, 8})
	if span > maxThreadObject {
		return arrays, latin
	}
	reqs, b := requests(n.refs, 0, span)
	ts.vm.Mem.ReadV(reqs)
	for i := range reqs {
		object := b[span*i:][:span]
		if n.refs[i] == 0 || !reqs[i].OK || ts.heap.KlassIn(object) != klass {
			continue
		}
		if value.Signature == "[B" {
			if object[coder.Offset] > 1 {
				continue
			}
			latin[i] = object[coder.Offset] == 0
		}
		arrays[i], _ = ts.heap.ReferenceIn(object, value.Offset)
	}
	return arrays, latin
}
