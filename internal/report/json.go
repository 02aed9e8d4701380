package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Schema names the format of JSON's output. Fields are only ever added to it; a change that alters
// the meaning of one gets a new name.
const Schema = "candid.report/1"

// Report is the format of JSON's output. Indices count from 0. Times are in ns. A weight is in the
// unit of Event.
type Report struct {
	Schema string `json:"schema"`
	// The recording, and how it was made.
	Command  string     `json:"command"`
	Host     string     `json:"host"`
	Engine   string     `json:"engine"`
	Describe string     `json:"describe"`
	Version  string     `json:"version"` // of candid
	Start    *time.Time `json:"start"`   // null if not known
	Duration int64      `json:"duration_ns"`
	Notes    []string   `json:"notes"`
	// Unfinished: candid was ended while it recorded, or it still records.
	Unfinished bool      `json:"unfinished"`
	Processes  []Process `json:"processes"`
	// Services are those of a store if none was chosen, the one with most CPU time first; absent
	// otherwise.
	Services []Service `json:"services,omitempty"`
	Cost     Cost      `json:"cost"`

	Event  Event   `json:"event"`
	Events []Event `json:"events"` // all events of the recording
	// States are what threads were doing, by state and system call.
	States []State `json:"states"`
	// Labels are those of the samples, by key and value; absent if there are none. A
	// sample with several counts for each.
	Labels    []Label `json:"labels,omitempty"`
	All       Count   `json:"all"`                 // of the event, before any filter
	Shown     Count   `json:"shown"`               // what the filter left: all counts below are of it
	Unknown   uint64  `json:"unknown_thread_kind"` // left out because the kind of their thread is not known
	Lost      uint64  `json:"lost"`
	Throttled uint64  `json:"throttled"`
	Quality   Quality `json:"quality"`

	Threads []Thread `json:"threads"`
	Methods []Method `json:"methods"`
	// Calls is the call tree, Callers the tree of the methods asked for; null if they were not
	// asked for. The first node is the root and has method -1 and parent -1; each other node comes
	// after its parent.
	Calls   []Node `json:"calls"`
	Callers []Node `json:"callers"`
}

// Cost is what the recording cost; 0 means not known.
type Cost struct {
	Copying     int64  `json:"copying_ns"`    // in the targets' time
	TargetCPU   int64  `json:"target_cpu_ns"` // used by the targets in all
	OwnCPU      int64  `json:"own_cpu_ns"`    // of candid itself
	Memory      uint64 `json:"memory_bytes"`  // of candid itself, peak
	FirstWalked int64  `json:"first_walked_ns"`
	// If this is a part of a recording: the totals of the whole.
	Samples  uint64 `json:"whole_samples,omitempty"`
	Recorded int64  `json:"whole_ns,omitempty"`
}

// Process is a profiled process.
type Process struct {
	PID     int    `json:"pid"`
	Runtime string `json:"runtime"`
	Command string `json:"command"`
}

// Event describes what was sampled.
type Event struct {
	Name   string `json:"name"`
	Unit   string `json:"unit"`
	Period uint64 `json:"period"`
}

func eventOf(e profile.Event) Event { return Event{Name: e.Name, Unit: e.Unit, Period: e.Period} }

// State is what threads were doing.
type State struct {
	State   string `json:"state"`
	Syscall string `json:"syscall"` // the one they were in; "": none
	Self    Count  `json:"count"`
}

// Label is a key and value attached to samples. Value is a text, or a number in Unit.
type Label struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	Unit  string `json:"unit,omitempty"`
	Self  Count  `json:"count"`
}

// Count is a number of samples and their weight.
type Count struct {
	Samples uint64 `json:"samples"`
	Weight  uint64 `json:"weight"`
}

// Quality counts samples by how certain their stacks are; each is in one of
// complete, stitched, unnamed, heuristic, truncated and broken.
type Quality struct {
	Samples   uint64            `json:"samples"`
	Complete  uint64            `json:"complete"`
	Stitched  uint64            `json:"stitched"`
	Unnamed   uint64            `json:"unnamed"` // complete, but a managed frame's method is not known
	Heuristic uint64            `json:"heuristic"`
	Truncated uint64            `json:"truncated"`
	Broken    uint64            `json:"broken"`
	Reasons   map[string]uint64 `json:"reasons"` // of the broken ones
}

// Thread is a thread with samples, or one that the kernel saw run.
type Thread struct {
	PID     int     `json:"pid"`
	TID     int     `json:"tid"`
	Name    string  `json:"name"`
	OSName  string  `json:"os_name"`
	Kind    string  `json:"kind,omitempty"` // what it is for; absent if not known
	Self    Count   `json:"count"`
	Quality Quality `json:"quality"`
	// KernelCPU is what the kernel counted, in ns; 0 if not known.
	KernelCPU uint64 `json:"kernel_cpu_ns"`
	// States are the thread's counts, by name of the state.
	States map[string]Count `json:"states"`
	// KernelShare and ExpectedSamples are null if there is nothing to compare.
	KernelShare     *float64 `json:"kernel_share"`
	ExpectedSamples *float64 `json:"expected_samples"`
	Disagrees       bool     `json:"disagrees"`
}

// Method is a method with its self and total.
type Method struct {
	Name      string            `json:"name"`
	Module    string            `json:"module"`
	File      string            `json:"file"`
	Signature string            `json:"signature,omitempty"` // only if methods are told apart by it
	Line      int32             `json:"line,omitempty"`      // only if lines are told apart, and if known
	Unnamed   bool              `json:"unnamed"`             // the file has no name there
	Kind      string            `json:"kind"`                // the most frequent one
	Kinds     map[string]uint64 `json:"kinds"`               // samples by kind
	Self      Count             `json:"self"`
	Total     Count             `json:"total"`
	Guessed   uint64            `json:"guessed"` // samples in which its frame is a guess
	Coarse    uint64            `json:"coarse"`  // samples whose place in inlined code is coarse
}

// Node is a node of a tree.
type Node struct {
	Parent int    `json:"parent"`
	Method int    `json:"method"` // index into methods
	Kind   string `json:"kind"`
	Self   Count  `json:"self"`
	Total  Count  `json:"total"`
}

// JSON writes the whole report for scripts, in the format of Report. Lists are not cut: only the
// filter, the tree views, ByTotal and Callers of the options count.
func JSON(w io.Writer, p *profile.Profile, o Options) error {
	s, err := selection(p, o)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(w).Encode(Make(s, o)); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Make returns the report of a selection.
func Make(s *profile.Selection, o Options) *Report {
	p := s.Profile
	r := &Report{
		Schema: Schema, Command: text(p.Meta.Command), Host: text(p.Meta.Host), Engine: p.Meta.Engine, Describe: text(p.Meta.Describe),
		Version: p.Meta.Version, Duration: int64(p.Meta.Duration), Notes: append([]string{}, p.Meta.Notes...), Unfinished: p.Meta.Unfinished,
		Processes: []Process{}, All: Count(s.All), Shown: Count(s.Chosen), Unknown: p.OfUnknownKind(s.Filter), Lost: p.Losses.Lost, Throttled: p.Losses.Throttled,
		Quality: QualityOf(s.Quality), Threads: []Thread{}, Methods: []Method{},
	}
	c := &p.Meta.Cost
	r.Cost = Cost{int64(c.Copying), int64(c.TargetCPU), int64(c.OwnCPU), c.Memory, int64(c.FirstWalked), c.Samples, int64(c.Recorded)}
	if !p.Meta.Start.IsZero() {
		r.Start = &p.Meta.Start
	}
	r.Services = withShares(o.Services)
	for _, pr := range p.Processes {
		r.Processes = append(r.Processes, Process{pr.PID, text(pr.Runtime), text(pr.Command)})
	}
	if s.Filter.Event < len(p.Events) {
		r.Event = eventOf(p.Events[s.Filter.Event])
	}
	r.Events, r.States = []Event{}, []State{}
	for _, e := range p.Events {
		r.Events = append(r.Events, eventOf(e))
	}
	for _, st := range s.ByState() {
		r.States = append(r.States, State{st.State.String(), text(st.Syscall), Count(st.Count)})
	}
	for _, l := range s.ByLabel() {
		row := Label{Key: text(l.Key), Value: l.Number, Unit: text(l.Unit), Self: Count(l.Count)}
		if l.IsText {
			row.Value = text(l.Text)
		}
		r.Labels = append(r.Labels, row)
	}
	for _, row := range s.ByThread() {
		t := thread(p, row)
		for state, c := range s.ThreadStates(row.Thread) {
			if c.Samples > 0 {
				t.States[profile.State(state).String()] = Count(c)
			}
		}
		r.Threads = append(r.Threads, t)
	}
	rows := methodList(s, o)
	index := make([]int, len(s.Methods))
	for i := range rows {
		index[rows[i].Method] = i
		r.Methods = append(r.Methods, method(s, &rows[i]))
	}
	if o.View == ViewTree {
		r.Calls = nodes(s.Calls(), index)
	}
	if o.Callers != nil {
		r.Callers = nodes(s.Callers(o.Callers), index)
	}
	return r
}

// text replaces invalid UTF-8 in a foreign string.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// QualityOf returns q in the form of JSON.
func QualityOf(q profile.Quality) Quality {
	out := Quality{q.Samples, q.Complete, q.Stitched, q.Unnamed, q.Heuristic, q.Truncated, q.Broken, map[string]uint64{}}
	for e := walk.EndTruncated + 1; e < walk.NumEnds; e++ {
		if q.Reasons[e] > 0 {
			out.Reasons[e.String()] = q.Reasons[e]
		}
	}
	return out
}

func thread(p *profile.Profile, row profile.ThreadCount) Thread {
	t := p.Threads[row.Thread]
	out := Thread{PID: t.PID, TID: t.TID, Name: text(t.Name), OSName: text(t.OSName), Kind: text(t.Kind), Self: Count(row.Samples),
		Quality: QualityOf(row.Quality), KernelCPU: t.KernelCPU, Disagrees: row.Disagrees, States: map[string]Count{}}
	if row.KernelShare >= 0 {
		out.KernelShare, out.ExpectedSamples = &row.KernelShare, &row.Expected
	}
	return out
}

func method(s *profile.Selection, m *profile.MethodCount) Method {
	f := s.Func(m.Method)
	out := Method{Line: s.Methods[m.Method].Line, Name: text(f.Name), Module: text(f.Module), File: text(f.File), Unnamed: f.NoName, Kind: profile.KindName(m.Kind()),
		Kinds: map[string]uint64{}, Self: Count(m.Self), Total: Count(m.Total), Guessed: m.Guessed, Coarse: m.Coarse}
	if s.Filter.Signatures {
		out.Signature = text(f.Signature)
	}
	for k := range walk.NumKinds {
		if m.Kinds[k] > 0 {
			out.Kinds[profile.KindName(k)] = m.Kinds[k]
		}
	}
	return out
}

func nodes(t *profile.Tree, index []int) []Node {
	out := make([]Node, len(t.Nodes))
	for i := range t.Nodes {
		n := &t.Nodes[i]
		out[i] = Node{Parent: int(n.Parent), Method: -1, Kind: profile.KindName(n.Kind), Self: Count(n.Self), Total: Count(n.Total)}
		if i == 0 {
			out[i].Parent, out[i].Kind = -1, ""
		} else {
			out[i].Method = index[n.Method]
		}
	}
	return out
}
