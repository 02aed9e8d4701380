package diff

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Normalize is how two recordings of different length are made comparable.
type Normalize string

// The values of Normalize.
const (
	Total Normalize = "total" // each as a share of its own total
	Time  Normalize = "time"  // per second of recording
	None  Normalize = "none"  // as they are
)

// ParseNormalize returns the value of a name.
func ParseNormalize(name string) (Normalize, error) {
	if n := Normalize(name); n == Total || n == Time || n == None {
		return n, nil
	}
	return "", fmt.Errorf("%q: there are %s, %s, %s", name, Total, Time, None)
}

// ErrIncomparable is wrapped by the error if two recordings cannot be compared.
var ErrIncomparable = errors.New("they cannot be compared")

// Side is one of the two recordings.
type Side struct {
	Name    string // for people: its file
	Profile *profile.Profile
	Passed  uint64        // samples that the filter left
	All     uint64        // samples before the filter
	Unknown uint64        // left out because the kind of their thread is not known
	Span    time.Duration // of what is compared; 0: not known
}

// Counts are those of base and new.
type Counts [2]profile.Count

// Method is a function with its counts on both sides.
type Method struct {
	Func        uint32 // index into Comparison.Funcs
	Kind        walk.Kind
	Self, Total Counts
}

// Node is a function on one path.
type Node struct {
	Parent      uint32 // index into the nodes; a parent comes before its children
	Func        uint32 // index into Comparison.Funcs; meaningless for the root
	Self, Total Counts
	// Children are the child nodes, those that changed most first.
	Children []uint32
	// Most is the largest change in it or below it.
	Most float64
}

// Comparison is two recordings side by side.
type Comparison struct {
	Sides     [2]Side // their profiles have no stacks
	Event     profile.Event
	Note      string // remarks on how they were made comparable; usually ""
	Normalize Normalize
	Pair      *profile.Profile // both, joined by Join
	Second    uint32           // the first thread of the new one
	// Funcs are those of Pair, followed by those that stand at the root of stacks without their
	// outer part; their names say so.
	Funcs   []profile.Func
	All     Counts
	Methods []Method

	trie   *profile.Trie // of Funcs
	leaves []Counts      // by node of trie
	tally  [2]tally
}

// Compare compares two recordings. The sides' profiles have one event each and have passed Check,
// and their samples may be summed up, as by profile.Weighed; Choose returns such sides. The error
// wraps ErrIncomparable.
func Compare(base, new Side, how Normalize) (*Comparison, error) {
	c := &Comparison{Sides: [2]Side{base, new}, Normalize: how}
	for _, s := range c.Sides {
		if len(s.Profile.Events) != 1 {
			return nil, fmt.Errorf("%w: %s has %d events", ErrIncomparable, s.Name, len(s.Profile.Events))
		}
		if how == Time && s.Span <= 0 {
			return nil, fmt.Errorf("%w by time: %s does not say how long it was recorded; --normalize total compares shares", ErrIncomparable, s.Name)
		}
	}
	b, n := base.Profile, new.Profile
	if sameEvent(b.Events[0], n.Events[0]) {
		c.Event = n.Events[0]
	} else if how == Total && (unnamed(b.Events[0]) || unnamed(n.Events[0]) || b.Events[0].Kind.OnCPU() && n.Events[0].Kind.OnCPU()) {
		// A file of collapsed stacks does not say what its samples are of, and the event of CPU
		// time has a different name for each way to sample it.
		c.Note = fmt.Sprintf("%s has %s, %s has %s: compared by shares of samples", base.Name, b.Events[0].Name, new.Name, n.Events[0].Name)
		c.Event = profile.UnnamedSamples()
		b, n = inSamples(b, c.Event), inSamples(n, c.Event)
	} else {
		return nil, fmt.Errorf("%w: %s has %s, %s has %s; --event chooses one that both have", ErrIncomparable, base.Name, eventName(b.Events[0]), new.Name, eventName(n.Events[0]))
	}
	for i := range c.Sides {
		// Both are in the pair: after joining, their own stacks are not needed.
		side := *c.Sides[i].Profile
		side.Nodes, side.Frames, side.Funcs = nil, nil, nil
		c.Sides[i].Profile = &side
	}
	c.Pair, c.Second = Join(b, n, true)
	c.Pair.Meta = c.Sides[1].Profile.Meta
	c.merge()
	c.count()
	return c, nil
}

func sameEvent(a, b profile.Event) bool { return a.Name == b.Name && a.Unit == b.Unit }

// unnamed reports whether an event is just samples of something unknown.
func unnamed(e profile.Event) bool { return e.Kind == profile.EventSamples && e.Unit == "count" }

func eventName(e profile.Event) string {
	if e.Unit == "count" {
		return e.Name
	}
	return e.Name + " in " + e.Unit
}

// inSamples returns a profile in which every sample weighs the same, unless it is counted in
// samples already.
func inSamples(p *profile.Profile, e profile.Event) *profile.Profile {
	out := *p
	if !unnamed(p.Events[0]) {
		out = *profile.EqualWeights(p)
	}
	out.Events = []profile.Event{e}
	return &out
}

// merge builds the trie of functions and sorts the samples into it.
func (c *Comparison) merge() {
	p := c.Pair
	c.Funcs = slices.Clip(p.Funcs)
	for end := range walk.NumEnds {
		c.Funcs = append(c.Funcs, profile.Func{Name: flame.EndName(end)})
	}
	c.trie = profile.NewTrie()
	var place [walk.NumEnds][]uint32 // by node of p: the node of trie, plus 1
	var path []uint32
	p.Each(func(s *profile.Sample, n uint64) {
		if place[s.End] == nil {
			place[s.End] = make([]uint32, len(p.Nodes))
			place[s.End][profile.RootNode] = 1
			if s.End != walk.EndComplete {
				place[s.End][profile.RootNode] = 1 + c.trie.Child(profile.RootNode, uint32(len(p.Funcs))+uint32(s.End))
			}
		}
		known := place[s.End]
		path = path[:0]
		at := s.Node
		for ; known[at] == 0; at = p.Nodes[at].Parent {
			path = append(path, at)
		}
		node := known[at] - 1
		for _, at := range slices.Backward(path) {
			node = c.trie.Child(node, p.Frames[p.Nodes[at].Frame].Func)
			known[at] = node + 1
		}
		if need := int(node) + 1; need > len(c.leaves) {
			c.leaves = append(c.leaves, make([]Counts, need-len(c.leaves))...)
		}
		side := 0
		if s.Thread >= c.Second {
			side = 1
		}
		all := profile.Count{Samples: n, Weight: s.Weight}
		c.leaves[node][side].Add(all)
		c.All[side].Add(all)
		t := &c.tally[side]
		t.samples += n
		t.weight += s.Weight
		t.squares.add(s.Weight/n, s.Weight)
	})
	c.leaves = append(c.leaves, make([]Counts, c.trie.Len()-len(c.leaves))...)
}

// missing reports whether a function stands for the missing outer part of stacks.
func (c *Comparison) missing(fn uint32) bool { return int(fn) >= len(c.Pair.Funcs) }

// count computes the method list, unsorted.
func (c *Comparison) count() {
	c.Methods = make([]Method, len(c.Pair.Funcs))
	for i := range c.Methods {
		c.Methods[i].Func = uint32(i)
	}
	for i := range c.Pair.Frames {
		f := &c.Pair.Frames[i]
		c.Methods[f.Func].Kind = f.Kind
	}
	met := make([]uint32, len(c.Funcs)) // the last stack in which a function was met
	for i, n := range c.leaves {
		if n[0].Samples+n[1].Samples == 0 || i == profile.RootNode {
			continue
		}
		if fn := c.trie.At(uint32(i)).Frame; !c.missing(fn) {
			c.Methods[fn].Self.add(n)
		}
		for at := uint32(i); at != profile.RootNode; at = c.trie.At(at).Parent {
			fn := c.trie.At(at).Frame
			if c.missing(fn) || met[fn] == uint32(i) {
				continue
			}
			met[fn] = uint32(i)
			c.Methods[fn].Total.add(n)
		}
	}
	c.Methods = slices.DeleteFunc(c.Methods, func(m Method) bool { return m.Total[0].Samples+m.Total[1].Samples == 0 })
}

func (n *Counts) add(o Counts) {
	n[0].Add(o[0])
	n[1].Add(o[1])
}

// Value returns a count of a side as it is compared: a share from 0 to 1 (Total), weight per second
// (Time) or weight (None).
func (c *Comparison) Value(side int, n profile.Count) float64 {
	switch c.Normalize {
	case Time:
		return float64(n.Weight) / c.Sides[side].Span.Seconds()
	case None:
		return float64(n.Weight)
	}
	return n.Share(c.All[side])
}

// Change returns by how much a count went up.
func (c *Comparison) Change(n Counts) float64 { return c.Value(1, n[1]) - c.Value(0, n[0]) }

// Full returns the larger Value of all of a side.
func (c *Comparison) Full() float64 { return max(c.Value(0, c.All[0]), c.Value(1, c.All[1])) }

// Chance returns the probability that two recordings of one program differ that much or more, from
// 0 to 1. It covers the effect of sampling, not how much the program itself differs from run to
// run. Samples of different weight count as fewer samples of equal weight.
func (c *Comparison) Chance(n Counts) float64 {
	var k, of [2]float64
	for side := range k {
		of[side] = c.tally[side].effective()
		k[side] = n[side].Share(c.All[side]) * of[side]
	}
	if c.Normalize != Total {
		// The weight of a sample may differ: at twice the rate, the same number of samples stands
		// for half as much.
		var seen [2]float64
		for side, t := range c.tally {
			seen[side] = c.Value(side, profile.Count{Weight: 1}) * float64(t.weight) / t.effective()
			if seen[side] > 0 {
				seen[side] = 1 / seen[side]
			}
		}
		return rates(k[0], seen[0], k[1], seen[1])
	}
	return shares(k[0], of[0], k[1], of[1])
}

// Effective returns how many samples of equal weight would carry as much information as a side's.
func (c *Comparison) Effective(side int) float64 { return c.tally[side].effective() }

// WithinChance reports whether chance alone explains a difference.
func (c *Comparison) WithinChance(n Counts) bool { return c.Chance(n) > Unlikely }

// List returns the method list, sorted by the change of self, or of total: the largest first, then
// by value, then by name.
func (c *Comparison) List(byTotal bool) []Method {
	type row struct {
		m            Method
		change, most float64
		name         string
	}
	rows := make([]row, len(c.Methods))
	for i, m := range c.Methods {
		n := m.Self
		if byTotal {
			n = m.Total
		}
		rows[i] = row{m, math.Abs(c.Change(n)), max(c.Value(0, m.Total[0]), c.Value(1, m.Total[1])), c.Funcs[m.Func].Name}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.change, a.change), cmp.Compare(b.most, a.most), strings.Compare(a.name, b.name), cmp.Compare(a.m.Func, b.m.Func))
	})
	out := make([]Method, len(rows))
	for i := range rows {
		out[i] = rows[i].m
	}
	return out
}
