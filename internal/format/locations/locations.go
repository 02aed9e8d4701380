// Package locations groups the frames of stacks into Locations, as pprof and the formats derived
// from it have them: a place in the code, with the functions that were inlined there.
package locations

import (
	"iter"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Chains groups the nodes of a profile's trie into Locations: a physical frame and the frames that
// were inlined into it, which are the nodes just below its own. Equal chains anywhere in the trie
// are one, and frames that differ only in what a file does not keep count as equal.
type Chains struct {
	p    *profile.Profile
	of   []uint32 // by node: its chain, which ends at that node
	link *profile.Trie
}

// New groups the nodes of p, which must not change while the result is used.
func New(p *profile.Profile) Chains {
	c := Chains{p: p, of: make([]uint32, len(p.Nodes)), link: profile.NewTrie()}
	kept := keptFrames(p)
	for i := 1; i < len(p.Nodes); i++ {
		n := p.Nodes[i]
		outer := uint32(0)
		if p.Frames[n.Frame].Kind == walk.KindInlined {
			outer = c.of[n.Parent]
		}
		c.of[i] = c.link.Child(outer, kept[n.Frame])
	}
	return c
}

// KeptFlags are the frame flags that a file keeps. Whether a frame's address is a return address
// matters only until the frame is named.
const KeptFlags = walk.Virtual | walk.Stitched | walk.Coarse | walk.Skid

// FileAddr returns the address that a file keeps of a frame. Addresses of generated code mean
// nothing after the run, and would make a Location of every return address.
func FileAddr(f profile.Frame) uint64 {
	if f.Kind == walk.KindNative || f.Kind == walk.KindKernel {
		return f.Addr
	}
	return 0
}

// keptFrames maps every frame to the first one that looks the same in a file.
func keptFrames(p *profile.Profile) []uint32 {
	kept := make([]uint32, len(p.Frames))
	seen := make(map[profile.Frame]uint32, len(p.Frames))
	for i, f := range p.Frames {
		f.BCI = 0
		f.Flags &= KeptFlags
		f.Addr = FileAddr(f)
		first, ok := seen[f]
		if !ok {
			first = uint32(i)
			seen[f] = first
		}
		kept[i] = first
	}
	return kept
}

// Len returns the number of chains, with the empty one, whose number is 0.
func (c *Chains) Len() int { return c.link.Len() }

// Stack returns the chains of the stack that ends in a node, the innermost first.
func (c *Chains) Stack(node uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for node != profile.RootNode && yield(c.of[node]) {
			node = c.caller(node)
		}
	}
}

// Frames returns the functions of a chain, the innermost first, the physical frame last.
func (c *Chains) Frames(chain uint32) iter.Seq[*profile.Frame] {
	return func(yield func(*profile.Frame) bool) {
		for chain != 0 {
			n := c.link.At(chain)
			if !yield(&c.p.Frames[n.Frame]) {
				return
			}
			chain = n.Parent
		}
	}
}

// caller returns the node from which the physical frame at or above node was called.
func (c *Chains) caller(node uint32) uint32 {
	for {
		n := c.p.Nodes[node]
		if n.Parent == profile.RootNode || c.p.Frames[n.Frame].Kind != walk.KindInlined {
			return n.Parent
		}
		node = n.Parent
	}
}
