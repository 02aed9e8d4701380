package html

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
)

// WriteDiff writes two recordings to w as one HTML file: a flame graph as wide as
// either or as the middle of both, in the colours of what changed by more than chance.
// Every sample of both is in it.
func WriteDiff(w io.Writer, c *diff.Comparison) error {
	p := *c.Pair
	p.Meta.Notes = notes(c)
	p.Losses = profile.Losses{}
	for _, s := range c.Sides {
		p.Losses.Lost += s.Profile.Losses.Lost
		p.Losses.Throttled += s.Profile.Losses.Throttled
	}
	return Write(w, &p, Options{
		Title:    filepath.Base(c.Sides[0].Name) + " → " + filepath.Base(c.Sides[1].Name),
		compared: &compared{c},
	})
}

// notes are what is to be known of both.
func notes(c *diff.Comparison) []string {
	var out []string
	if c.Note != "" {
		out = append(out, c.Note)
	}
	for i, s := range c.Sides {
		which := [2]string{"base", "new"}[i]
		if s.Passed < s.All {
			out = append(out, fmt.Sprintf("%s: of %d samples, %d pass the filter", which, s.All, s.Passed))
		}
		for _, n := range s.Profile.Meta.Notes {
			out = append(out, which+": "+n)
		}
	}
	return out
}

// compared is what the page needs of two that it does not need of one.
type compared struct{ *diff.Comparison }

func (c *compared) header() *flame.Compared {
	h := &flame.Compared{Second: c.Second, Normalize: string(c.Normalize)}
	for i := range c.Sides {
		h.Names[i] = flame.Visible(c.Sides[i].Name)
		h.Samples[i] = c.All[i].Samples
		h.Seconds[i] = max(c.Sides[i].Span.Seconds(), 0)
		h.Scale[i] = 1
		if c.Normalize == diff.Time {
			h.Scale[i] = 1 / c.Sides[i].Span.Seconds()
		}
	}
	return h
}

// What of a node changed by more than chance.
const (
	certainTotal = 1 << iota
	certainSelf
)

// certain says of every place of the tree what of it changed by more than chance.
func (c *compared) certain(t *flame.Tree) []uint8 {
	self := make([]diff.Counts, len(t.Order))
	for _, cell := range t.Cells {
		side := 0
		if cell.Thread >= c.Second {
			side = 1
		}
		self[cell.Node][side].Add(profile.Count{Samples: uint64(cell.Count), Weight: cell.Weight})
	}
	// A place's parent is the last one before it that is less deep.
	parent := make([]uint32, len(t.Order))
	var open []uint32
	for i := range t.Order {
		d := int(t.Depth[i])
		open = append(open[:d], uint32(i))
		if d > 0 {
			parent[i] = open[d-1]
		}
	}
	out := make([]uint8, len(t.Order))
	total := make([]diff.Counts, len(t.Order))
	for i := len(total) - 1; i >= 0; i-- {
		for side := range self[i] {
			total[i][side].Add(self[i][side])
			if i > 0 {
				total[parent[i]][side].Add(total[i][side])
			}
		}
		if !c.WithinChance(total[i]) {
			out[i] |= certainTotal
		}
		if !c.WithinChance(self[i]) {
			out[i] |= certainSelf
		}
	}
	return out
}
