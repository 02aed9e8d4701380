package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/profile"
)

// DiffSchema names the format of DiffJSON's output. Fields are only ever added to it; a change that
// alters the meaning of one gets a new name.
const DiffSchema = "candid.diff/1"

// Diff is the format of DiffJSON's output. Indices count from 0, times are in ns, a weight is in
// the unit of Event. A value is what is compared: with normalize "total" a share from 0 to 1 of all
// that its side shows, with "time" the weight per second of recording, with "none" the weight.
type Diff struct {
	Schema    string `json:"schema"`
	Event     Event  `json:"event"`
	Normalize string `json:"normalize"`
	Note      string `json:"note"`
	// Unlikely is the probability above which a difference counts as within chance.
	Unlikely float64    `json:"unlikely"`
	Base     DiffSide   `json:"base"`
	New      DiffSide   `json:"new"`
	Methods  []DiffRow  `json:"methods"` // sorted as asked for, never cut
	Calls    []DiffNode `json:"calls"`   // the call tree; null if it was not asked for
	Callers  []DiffNode `json:"callers"` // of the methods that were asked for; null if there are none
}

// DiffSide is one of the two recordings.
type DiffSide struct {
	File    string  `json:"file"`
	Command string  `json:"command"`
	All     uint64  `json:"all_samples"` // of the event, before any filter
	Shown   Count   `json:"shown"`
	Span    int64   `json:"span_ns"` // of what is shown; 0 if not known
	Quality Quality `json:"quality"`
}

// DiffCount is a count on both sides.
type DiffCount struct {
	Base      Count   `json:"base"`
	New       Count   `json:"new"`
	BaseValue float64 `json:"base_value"`
	NewValue  float64 `json:"new_value"`
	Change    float64 `json:"change"` // new_value - base_value
	// Chance is the probability that two recordings of one program differ that much.
	Chance       float64 `json:"chance"`
	WithinChance bool    `json:"within_chance"`
}

// DiffRow is a method.
type DiffRow struct {
	Name   string    `json:"name"`
	Module string    `json:"module"`
	Kind   string    `json:"kind"`
	Status string    `json:"status"` // "new", "gone" or "both"
	Self   DiffCount `json:"self"`
	Total  DiffCount `json:"total"`
}

// DiffNode is a node of a tree; the first is the root and has parent -1.
type DiffNode struct {
	Parent int       `json:"parent"`
	Name   string    `json:"name"`
	Module string    `json:"module"`
	Self   DiffCount `json:"self"`
	Total  DiffCount `json:"total"`
}

// DiffJSON writes for scripts what changed from one recording to the other, in the format of Diff.
func DiffJSON(w io.Writer, c *diff.Comparison, o DiffOptions) error {
	if o.View == ViewCallers && o.Callers == nil {
		return ErrNoCallers
	}
	d := Diff{Schema: DiffSchema, Event: eventOf(c.Event), Normalize: string(c.Normalize), Note: text(c.Note), Unlikely: diff.Unlikely, Methods: []DiffRow{}}
	for i, side := range []*DiffSide{&d.Base, &d.New} {
		s := &c.Sides[i]
		*side = DiffSide{text(s.Name), text(s.Profile.Meta.Command), s.All, Count(c.All[i]), int64(s.Span), QualityOf(s.Profile.Quality())}
	}
	for _, m := range c.List(o.ByTotal) {
		f := &c.Funcs[m.Func]
		st := status(m.Total)
		if st == "" {
			st = "both"
		}
		d.Methods = append(d.Methods, DiffRow{text(f.Name), text(f.Module), profile.KindName(m.Kind), st, diffCount(c, m.Self), diffCount(c, m.Total)})
	}
	if o.View == ViewTree {
		d.Calls = diffNodes(c, c.Calls())
	}
	if o.Callers != nil {
		d.Callers = diffNodes(c, c.Callers(o.Callers))
	}
	if err := json.NewEncoder(w).Encode(&d); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func diffCount(c *diff.Comparison, n diff.Counts) DiffCount {
	p := c.Chance(n)
	return DiffCount{Count(n[0]), Count(n[1]), c.Value(0, n[0]), c.Value(1, n[1]), c.Change(n), p, p > diff.Unlikely}
}

func diffNodes(c *diff.Comparison, nodes []diff.Node) []DiffNode {
	out := make([]DiffNode, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		out[i] = DiffNode{Parent: int(n.Parent), Self: diffCount(c, n.Self), Total: diffCount(c, n.Total)}
		if i == 0 {
			out[i].Parent = -1
		} else {
			out[i].Name, out[i].Module = text(c.Funcs[n.Func].Name), text(c.Funcs[n.Func].Module)
		}
	}
	return out
}
