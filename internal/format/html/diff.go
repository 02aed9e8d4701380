package html

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
)

// WriteDiff writes two recordings to w as one HTML file: a flame graph as wide as either or as the
// mean of both, in colours for what changed by more than chance. Every sample of both is in it.
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

// notes returns the remarks on both recordings.
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

// compared is what the page needs for two recordings but not for one.
type compared struct{ *diff.Comparison }

func (c *compared) header() *flame.Compared {
	h := &flame.Compared{Second: c.Second, Normalize: string(c.Normalize)}
	for i := range c.Sides {
		h.Names[i] = flame.Visible(c.Sides[i].Name)
		h.Samples[i] = c.All[i].Samples
		h.Seconds[i] = max(c.Sides[i].Span.Seconds(), 0)
		h.Scale[i] = 1
		h.Effective[i] = c.Effective(i)
		if c.Normalize == diff.Time {
			h.Scale[i] = 1 / c.Sides[i].Span.Seconds()
		}
	}
	return h
}
