package live

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
)

// Schema names the format of JSON's output. Fields are only ever added to it; a change that alters
// the meaning of one gets a new name.
const Schema = "candid.top/1"

// Report is a Table as JSON. Times are in ns, shares from 0 to 1, a weight is in
// the unit of Event.
type Report struct {
	Schema    string           `json:"schema"`
	Version   string           `json:"version"` // of candid
	Engine    string           `json:"engine"`
	Describe  string           `json:"describe"`
	Duration  int64            `json:"duration_ns"`
	Processes []report.Process `json:"processes"`
	Event     report.Event     `json:"event"`
	All       report.Count     `json:"all"`
	Lost      uint64           `json:"lost"`
	// Unkept counts the samples of which only the methods are known, and that are missing in the
	// threads' hottest methods.
	Unkept    uint64         `json:"unkept"`
	Forgotten report.Count   `json:"forgotten"` // self of methods that were dropped to save memory
	Quality   report.Quality `json:"quality"`
	OwnCPU    int64          `json:"own_cpu_ns"` // candid's own, including attaching
	// States are shares of the total by what the threads were doing.
	States map[string]float64 `json:"states"`
	// Waits are the longest of the last minute, if most of that time was spent waiting.
	Waits   []WaitReport   `json:"waits"`
	Notes   []string       `json:"notes"`
	Methods []MethodReport `json:"methods"` // the most self first
	Threads []ThreadReport `json:"threads"` // the most weight first
}

// MethodReport is a row of the method table.
type MethodReport struct {
	Name   string `json:"name"`
	Module string `json:"module"`
	Kind   string `json:"kind"` // the most frequent one
	Self   Share  `json:"self"`
	Total  Share  `json:"total"`
}

// ThreadReport is a row of the thread table.
type ThreadReport struct {
	PID   int    `json:"pid"`
	TID   int    `json:"tid"`
	Name  string `json:"name"`
	State string `json:"state"` // in its latest sample
	Count Share  `json:"count"`
	// CPU is how much of one CPU it used; null if that does not follow from the event.
	CPU     *float64 `json:"cpu"`
	Hottest *Hottest `json:"hottest"` // null if there is none
}

// Hottest is the method of a thread with the most self.
type Hottest struct {
	Name   string  `json:"name"`
	Module string  `json:"module"`
	Share  float64 `json:"share"` // of the thread's weight
	// Waits is the state of a thread that mostly waited; "" otherwise.
	Waits string `json:"waits"`
}

// WaitReport is time spent waiting in one state, and the function of the program that waited.
type WaitReport struct {
	State  string `json:"state"`
	Name   string `json:"name"`
	Module string `json:"module"`
	Wait   Share  `json:"wait"`
}

// Share is an amount and its share of the total.
type Share struct {
	Samples uint64  `json:"samples"`
	Weight  uint64  `json:"weight"`
	Share   float64 `json:"share"`
}

func shareOf(c, all profile.Count) Share {
	return Share{Samples: c.Samples, Weight: c.Weight, Share: c.Share(all)}
}

// Report returns everything since the start. The query for the table must have set Threads, and its
// window must reach back to the start.
func (t *Table) Report(version string) *Report {
	all := t.Since.Count
	r := &Report{
		Schema: Schema, Version: version, Engine: t.Begun.Engine, Describe: t.Begun.Describe, Duration: int64(t.Elapsed),
		All: report.Count(all), Lost: t.Since.Lost, Unkept: t.Since.Unkept, Forgotten: report.Count(t.Forgotten),
		Quality: report.QualityOf(t.Since.Quality), OwnCPU: int64(t.Since.Own),
		Processes: []report.Process{}, States: map[string]float64{}, Waits: []WaitReport{}, Notes: append([]string{}, t.Notes...), Methods: []MethodReport{}, Threads: []ThreadReport{},
	}
	if len(t.Begun.Events) > 0 {
		e := t.Begun.Events[0]
		r.Event = report.Event{Name: e.Name, Unit: e.Unit, Period: e.Period}
	}
	for i, w := range t.Since.States {
		if w > 0 {
			r.States[profile.State(i).String()] += float64(w) / float64(max(all.Weight, 1))
		}
	}
	for _, w := range t.Waits[:min(10, len(t.Waits))] {
		r.Waits = append(r.Waits, WaitReport{w.State.String(), w.Name, w.Module, shareOf(w.Count, t.Recent.Count)})
	}
	for _, p := range t.Processes {
		r.Processes = append(r.Processes, report.Process{PID: p.PID, Runtime: p.Runtime, Command: p.Command})
	}
	for i := range t.Rows {
		m := &t.Rows[i]
		r.Methods = append(r.Methods, MethodReport{
			Name: m.Name, Module: m.Module, Kind: profile.KindName(m.Kind),
			Self: shareOf(m.SinceSelf, all), Total: shareOf(m.SinceTotal, all),
		})
	}
	slices.SortFunc(r.Methods, func(a, b MethodReport) int {
		return cmp.Or(cmp.Compare(b.Self.Weight, a.Self.Weight), cmp.Compare(b.Self.Samples, a.Self.Samples),
			cmp.Compare(b.Total.Weight, a.Total.Weight), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module))
	})
	for i := range t.Threads {
		th := &t.Threads[i]
		out := ThreadReport{PID: th.PID, TID: th.TID, Name: th.Name, State: th.State.String(), Count: shareOf(th.Since, all)}
		if t.CPUTime() && t.Elapsed > 0 {
			cpu := float64(th.Since.Weight) / float64(t.Elapsed)
			out.CPU = &cpu
		}
		if th.Hottest != (Method{}) {
			out.Hottest = &Hottest{th.Hottest.Name, th.Hottest.Module, th.HottestShare, ""}
			if th.Waits != profile.StateUnknown {
				out.Hottest.Waits = th.Waits.String()
			}
		}
		r.Threads = append(r.Threads, out)
	}
	slices.SortFunc(r.Threads, func(a, b ThreadReport) int {
		return cmp.Or(cmp.Compare(b.Count.Weight, a.Count.Weight), cmp.Compare(b.Count.Samples, a.Count.Samples),
			cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID))
	})
	return r
}
