package jfr

import (
	"encoding/binary"
	"math/bits"

	"github.com/candid-profiler/candid/internal/profile"
)

// maxRun is the maximum size of a constant of nodes, in bytes.
const maxRun = 64 << 10

// node returns the number of a node of the trie; the root's is 0. New nodes get the next numbers,
// callers before callees.
func (c *constants) node(node uint32) uint32 {
	c.path = c.path[:0]
	parent := uint32(0)
	for ; node != profile.RootNode; node = c.src.At(node).Parent {
		if parent = c.nodeOf.get(node); parent != 0 {
			break
		}
		c.path = append(c.path, node)
	}
	if len(c.path) == 0 {
		return parent
	}
	if len(c.run) > maxRun {
		c.endRun()
	}
	if len(c.run) == 0 {
		c.runFrom = c.nextNode + 1
	}
	// A run holds the caller of its first node, its length, and each node's frame. Every other node
	// is called by the node before.
	for i := len(c.path) - 1; i >= 0; i-- {
		id := c.frame(c.src.At(c.path[i]).Frame)
		if i == len(c.path)-1 {
			c.run = binary.AppendUvarint(c.run, uint64(parent))
			c.run = binary.AppendUvarint(c.run, uint64(len(c.path)))
		}
		c.run = binary.AppendUvarint(c.run, id)
		c.nextNode++
		c.nodeOf.set(c.path[i], c.nextNode)
	}
	return c.nextNode
}

// endRun makes a constant of the nodes since the last one. Its number is that of the first of them.
func (c *constants) endRun() {
	if len(c.run) == 0 {
		return
	}
	c.nodes.entry(uint64(c.runFrom))
	c.nodes.b = appendBytes(c.nodes.b, c.run)
	c.run = c.run[:0]
}

// trace returns the number of the stack that ends in a node, in the form for other readers: many
// stacks differ only in what that form has no field for.
func (c *constants) trace(node uint32, truncated bool) uint64 {
	if id := c.traceOf.get(node); id != 0 {
		return uint64(id)
	}
	frames := c.src.Frames()
	depth := 0
	h := [2]uint64{0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f}
	if truncated {
		h[0]++
	}
	for n := node; n != profile.RootNode; depth++ {
		nd := c.src.At(n)
		f := &frames[nd.Frame]
		h = mix(h, uint64(f.Func)<<32|uint64(uint32(f.Line)), uint64(uint32(f.BCI))<<8|uint64(f.Kind))
		n = nd.Parent
	}
	id, known := c.traceByHash.number(h)
	if !known {
		c.nextTrace = id
		if c.sorted {
			c.traceAt = append(c.traceAt, len(c.traces.b))
		}
		c.traces.entry(uint64(id))
		c.traces.flag(truncated)
		if depth == 0 {
			// Some readers drop samples without frames.
			c.traces.int(1)
			c.traces.long(c.noStack())
			c.traces.int(0)
			c.traces.int(0)
			c.traces.b = append(c.traces.b, frameNative)
		} else {
			c.traces.int(int32(depth))
		}
		for n := node; n != profile.RootNode; {
			nd := c.src.At(n)
			f := &frames[nd.Frame]
			c.traces.long(c.function(f.Func))
			c.traces.int(max(f.Line, 0))
			c.traces.int(max(f.BCI, 0))
			c.traces.b = append(c.traces.b, c.frameType(f))
			n = nd.Parent
		}
	}
	c.traceOf.set(node, id)
	return uint64(id)
}

// stack returns the number of a node for a sample's reference: 0 if it is the node of the first
// sample with that stack for other readers, because the stack then implies it.
func (c *constants) stack(trace uint64, node uint32) uint32 {
	i := trace - uint64(c.traceByHash.first)
	if i < uint64(len(c.nodeFirst)) {
		if c.nodeFirst[i] == node {
			return 0
		}
		return node
	}
	// Stacks get consecutive numbers.
	if len(c.stacks) == 0 {
		c.stackFrom, c.stackLast = trace, 0
	}
	c.stacks = binary.AppendVarint(c.stacks, int64(node)-int64(c.stackLast))
	c.stackLast = node
	c.nodeFirst = append(c.nodeFirst, node)
	return 0
}

// noStack returns the number of a method that stands for a stack of which nothing is known.
func (c *constants) noStack() uint64 {
	const id = 1<<31 - 1 // more than there are functions
	if !c.haveNoStack {
		c.haveNoStack = true
		class, name, desc := c.class(""), c.named("[no stack]"), c.named(nativeDescriptor)
		c.methods.entry(id)
		c.methods.long(class)
		c.methods.long(name)
		c.methods.long(desc)
		c.methods.int(0)
		c.methods.flag(false)
	}
	return id
}

func mix(h [2]uint64, a, b uint64) [2]uint64 {
	hi, lo := bits.Mul64(h[0]^a, 0xd6e8feb86659fd93)
	hi2, lo2 := bits.Mul64(h[1]^b^bits.RotateLeft64(a, 23), 0xff51afd7ed558ccd)
	return [2]uint64{hi ^ lo2 + 0x632be59bd9b4e019, hi2 ^ lo}
}
