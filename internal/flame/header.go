package flame

import (
	"cmp"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/javaname"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Header is what a page needs to know of a recording beside its tree, as JSON.
type Header struct {
	Version int    `json:"version"` // of this format
	Title   string `json:"title"`
	About
	Events  []Event  `json:"events"`
	Coarse  []bool   `json:"coarse"` // by event, as profile.CoarseEvents returns it; set by the caller of NewHeader
	Threads []Thread `json:"threads"`
	Kinds   []string `json:"kinds"`
	Strings []string `json:"strings"`
	// Funcs holds six indices into Strings for each function: name, raw name,
	// signature, module, file, and whether it has no name (0 or 1).
	Funcs []uint32 `json:"funcs"`
	Split string   `json:"split"`
	// Compared is set if the recording is two that are compared.
	Compared *Compared `json:"compared,omitempty"`
}

// About describes how a recording was made, and how far it can be trusted.
type About struct {
	Command  string    `json:"command"`
	Host     string    `json:"host"`
	Start    string    `json:"start"`    // RFC 3339, "" if unknown
	Duration float64   `json:"duration"` // seconds
	Engine   string    `json:"engine"`
	Describe string    `json:"describe"`
	Candid   string    `json:"candid"` // version of candid
	Notes    []string  `json:"notes"`
	Process  []Process `json:"processes"`
	Quality  Quality   `json:"quality"`
	Lost     uint64    `json:"lost"`
	Throttle uint64    `json:"throttled"`
}

// NewAbout returns the description of a profile.
func NewAbout(p *profile.Profile) About {
	a := About{
		Command: Visible(p.Meta.Command), Host: Visible(p.Meta.Host), Duration: p.Meta.Duration.Seconds(),
		Engine: Visible(p.Meta.Engine), Describe: Visible(p.Meta.Describe), Candid: Visible(p.Meta.Version),
		Notes: []string{}, Process: []Process{}, Quality: NewQuality(p.Quality()), Lost: p.Losses.Lost, Throttle: p.Losses.Throttled,
	}
	if !p.Meta.Start.IsZero() {
		a.Start = p.Meta.Start.Format(time.RFC3339)
	}
	for _, n := range p.Meta.Notes {
		a.Notes = append(a.Notes, Visible(n))
	}
	for _, x := range p.Processes {
		a.Process = append(a.Process, Process{x.PID, Visible(x.Command), Visible(x.Runtime)})
	}
	return a
}

// Compared describes the two recordings that are joined in one.
type Compared struct {
	Names     [2]string  `json:"names"`
	Second    uint32     `json:"second"` // the first thread of the new one
	Normalize string     `json:"normalize"`
	Scale     [2]float64 `json:"scale"` // factor for weights that are compared, unless shares are
	// Effective is how many samples of equal weight would carry as much information.
	Effective [2]float64 `json:"effective"`
	Samples   [2]uint64  `json:"samples"`
	Seconds   [2]float64 `json:"seconds"` // 0: not known
}

// Event describes what a sample counts.
type Event struct {
	Name   string `json:"name"`
	Unit   string `json:"unit"`
	Period uint64 `json:"period"`
}

// Process is one profiled process.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Runtime string `json:"runtime"`
}

// Thread is one profiled thread.
type Thread struct {
	PID  int    `json:"pid"`
	TID  int    `json:"tid"`
	Name string `json:"name"`
	OS   string `json:"os"`
	Kind string `json:"kind,omitempty"` // what it is for; "" if not known
	// Since is when its first sample was taken, in ns since the beginning, if another thread has
	// the same number and name because the kernel reused the number. Else 0.
	Since uint64 `json:"since,omitempty"`
}

// Quality counts samples by how certain their stacks are.
type Quality struct {
	Samples   uint64   `json:"samples"`
	Complete  uint64   `json:"complete"`
	Stitched  uint64   `json:"stitched"`
	Unnamed   uint64   `json:"unnamed"`
	Heuristic uint64   `json:"heuristic"`
	Truncated uint64   `json:"truncated"`
	Broken    uint64   `json:"broken"`
	Reasons   []Reason `json:"reasons"` // most frequent first
}

// Reason is why stacks are broken, with the number of samples.
type Reason struct {
	Name    string `json:"name"`
	Samples uint64 `json:"samples"`
}

// KindNames are the names of the legend, by walk.Kind. The last one is for frames that stand for
// the missing part of a stack.
var KindNames = [walk.NumKinds + 1]string{
	walk.KindUnknown:      "unknown",
	walk.KindKernel:       "kernel",
	walk.KindNative:       "native",
	walk.KindInterpreted:  "interpreted",
	walk.KindCompiled:     "compiled",
	walk.KindC1:           "C1",
	walk.KindC2:           "C2",
	walk.KindInlined:      "inlined",
	walk.KindStub:         "stub",
	walk.KindNativeMethod: "native method",
	walk.KindAOT:          "AOT",
	walk.KindTier0:        "Tier-0",
	walk.KindInstrumented: "Tier-0 instrumented",
	walk.KindOSR:          "OSR",
	walk.KindTier1:        "Tier-1",
	walk.KindReadyToRun:   "ReadyToRun",
	walk.NumKinds:         "no stack",
}

// stringTable stores each string once.
type stringTable struct {
	list  []string
	index map[string]uint32
}

func (t *stringTable) add(s string) uint32 {
	i, ok := t.index[s]
	if !ok {
		i = uint32(len(t.list))
		t.list = append(t.list, Visible(s))
		t.index[s] = i
	}
	return i
}

// NewHeader describes a recording for a page. It also returns for each symbol of its tree the
// function in Funcs, counted from 1.
func NewHeader(p *profile.Profile, t *Tree, title, split string) (*Header, []uint32) {
	kinds := KindNames
	for k := range kinds {
		kinds[k] = cmp.Or(kinds[k], profile.KindName(walk.Kind(k)))
	}
	h := &Header{
		Version: 1, Title: Visible(title), About: NewAbout(p), Kinds: kinds[:], Split: split,
		Events: []Event{}, Threads: []Thread{}, Funcs: []uint32{},
	}
	for _, e := range p.Events {
		h.Events = append(h.Events, Event{Visible(e.Name), Visible(e.Unit), e.Period})
	}
	for _, x := range p.Threads {
		h.Threads = append(h.Threads, Thread{PID: x.PID, TID: x.TID, Name: Visible(x.Name), OS: Visible(x.OSName), Kind: Visible(x.Kind)})
	}
	h.tellApart(p)

	// Only functions that occur in the graph are written, in the order of the symbols.
	table := &stringTable{index: make(map[string]uint32)}
	table.add("")
	funcs := make([]uint32, len(t.Symbols)) // per symbol, 1-based
	known := make(map[uint32]uint32)
	for i, s := range t.Symbols {
		if s.Func == NoFunc {
			h.Funcs = append(h.Funcs, table.add(EndName(s.End)), 0, 0, 0, 0, 0)
			funcs[i] = uint32(len(h.Funcs) / 6)
			continue
		}
		if known[s.Func] == 0 {
			f := &p.Funcs[s.Func]
			noName := uint32(0)
			if f.NoName {
				noName = 1
			}
			h.Funcs = append(h.Funcs, table.add(f.Name), table.add(f.Raw), table.add(javaname.Parameters(f.Signature)),
				table.add(f.Module), table.add(f.File), noName)
			known[s.Func] = uint32(len(h.Funcs) / 6)
		}
		funcs[i] = known[s.Func]
	}
	h.Strings = table.list
	return h, funcs
}

// tellApart sets when threads began, for those that nothing else distinguishes.
func (h *Header) tellApart(p *profile.Profile) {
	type name struct {
		pid, tid int
		name     string
	}
	first := make(map[name]int, len(p.Threads))
	var twice map[uint32]bool
	for i, t := range p.Threads {
		k := name{t.PID, t.TID, t.Name}
		at, ok := first[k]
		if !ok {
			first[k] = i
			continue
		}
		if twice == nil {
			twice = make(map[uint32]bool)
		}
		twice[uint32(at)], twice[uint32(i)] = true, true
	}
	if twice == nil || !p.HasTimes() {
		return
	}
	for i := range p.Samples {
		s := &p.Samples[i]
		if t := &h.Threads[s.Thread].Since; twice[s.Thread] && (*t == 0 || s.Time < *t) {
			*t = max(s.Time, 1)
		}
	}
}

// SidesApart removes what distinguishes threads within one recording if there are two: each
// thread's side does that.
func (h *Header) SidesApart() {
	for i := range h.Threads {
		h.Threads[i].Since = 0
	}
}

// NewQuality returns q in the form that pages read.
func NewQuality(q profile.Quality) Quality {
	h := Quality{Samples: q.Samples, Complete: q.Complete, Stitched: q.Stitched, Unnamed: q.Unnamed, Heuristic: q.Heuristic,
		Truncated: q.Truncated, Broken: q.Broken, Reasons: []Reason{}}
	for e, n := range q.Reasons {
		if n > 0 {
			h.Reasons = append(h.Reasons, Reason{walk.End(e).String(), n})
		}
	}
	slices.SortStableFunc(h.Reasons, func(a, b Reason) int {
		switch {
		case a.Samples > b.Samples:
			return -1
		case a.Samples < b.Samples:
			return 1
		}
		return 0
	})
	return h
}

// Share returns part of all as 0 to 255: 0 only for nothing, 255 only for all.
func Share(part, all uint64) uint64 {
	switch {
	case part == 0 || all == 0:
		return 0
	case part >= all:
		return 255
	}
	return min(254, max(1, uint64(float64(part)/float64(all)*255)))
}
