package report

import "github.com/candid-profiler/candid/internal/profile"

// SummarySchema names the format of SummaryReport, as Schema does that of Report.
const SummarySchema = "candid.summary/1"

// SummaryReport is what record prints at its end, for scripts. Times are in ns.
type SummaryReport struct {
	Schema    string   `json:"schema"`
	Command   string   `json:"command"`
	Engine    string   `json:"engine"`
	Duration  int64    `json:"duration_ns"`
	Event     Event    `json:"event"`
	All       Count    `json:"all"`
	Lost      uint64   `json:"lost"`
	Throttled uint64   `json:"throttled"`
	Idle      uint64   `json:"idle"`
	Quality   Quality  `json:"quality"`
	Hottest   []Method `json:"hottest"`
	Disagree  []Thread `json:"disagreeing_threads"` // with the kernel's CPU time
	Notes     []string `json:"notes"`
	Ended     []Ended  `json:"ended"` // targets that ended while they were recorded

	TargetCost  int64  `json:"target_cost_ns"` // 0: not known
	TargetCPU   int64  `json:"target_cpu_ns"`
	OwnCPU      int64  `json:"own_cpu_ns"`
	MaxRSS      uint64 `json:"max_rss_bytes"`
	FirstWalked int64  `json:"first_walked_ns"`
	StackBytes  uint64 `json:"stack_bytes"` // copied in all
	File        string `json:"file"`
}

// Ended is how a target ended. If neither a code nor a signal is set, it is not known.
type Ended struct {
	PID    int    `json:"pid"`
	After  int64  `json:"after_ns"`
	Code   *int   `json:"exit_code,omitempty"`
	Signal string `json:"signal,omitempty"` // the one that killed it, such as SIGKILL
}

// SummaryJSON returns the summary of a recording for scripts.
func SummaryJSON(p *profile.Profile, c Costs) *SummaryReport {
	s := p.Select(profile.Filter{Event: p.FirstEvent()})
	r := Make(s, Options{})
	out := &SummaryReport{
		Schema: SummarySchema, Command: r.Command, Engine: r.Engine, Duration: r.Duration, Event: r.Event, All: r.All,
		Lost: r.Lost, Throttled: r.Throttled, Idle: c.Idle, Quality: r.Quality, Hottest: r.Methods[:min(mostHottest, len(r.Methods))],
		Disagree: []Thread{}, Notes: r.Notes, Ended: append([]Ended{}, c.Ended...), TargetCost: int64(c.Target), TargetCPU: int64(c.TargetCPU), OwnCPU: int64(c.OwnCPU),
		MaxRSS: c.MaxRSS, FirstWalked: int64(c.FirstWalked), StackBytes: c.Stats.Bytes, File: text(c.File),
	}
	for _, t := range r.Threads {
		if t.Disagrees {
			out.Disagree = append(out.Disagree, t)
		}
	}
	return out
}
