package agent

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/push"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/walk"
)

// metrics counts what the agent has done. Its methods may be called from any goroutine.
type metrics struct {
	now      atomic.Uint64 // samples of the present part so far
	restarts atomic.Uint64 // recordings that were begun anew
	refused  atomic.Uint64 // files that were not put in force

	storeErrors atomic.Uint64
	stored      atomic.Int64 // end of the last part in the store, ns since 1970; 0: none

	mu        sync.Mutex
	parts     uint64
	samples   uint64 // of complete parts
	lost      uint64
	throttled uint64
	quality   profile.Quality
	weights   map[string]uint64 // by event
	units     map[string]string
}

// progress is told how many samples there are, a few times a second.
func (m *metrics) progress(samples uint64, _ time.Duration) { m.now.Store(samples) }

// part counts a part of the recording.
func (m *metrics) part(r *record.Result) {
	q, weights := r.Profile.Quality(), r.Profile.EventWeights()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts++
	m.samples += q.Samples
	m.lost += r.Costs.Stats.Lost
	m.throttled += r.Costs.Stats.Throttled
	m.quality.Merge(q)
	if m.weights == nil {
		m.weights, m.units = map[string]uint64{}, map[string]string{}
	}
	for i, e := range r.Profile.Events {
		if i < len(weights) {
			m.weights[e.Name] += weights[i]
			m.units[e.Name] = e.Unit
		}
	}
	m.now.Store(0)
}

// page writes metrics in the text format of Prometheus
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
type page struct {
	w    io.Writer
	seen map[string]bool
}

// put writes one value; labels are names and values in turn.
func (p *page) put(name, kind, help string, value float64, labels ...string) {
	if !p.seen[name] {
		p.seen[name] = true
		fmt.Fprintf(p.w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	var b strings.Builder
	for i := 0; i+1 < len(labels); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(labels[i] + `="` + escaped.Replace(labels[i+1]) + `"`)
	}
	if b.Len() > 0 {
		name += "{" + b.String() + "}"
	}
	fmt.Fprintf(p.w, "%s %s\n", name, strconv.FormatFloat(value, 'g', -1, 64))
}

var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

const (
	counter = "counter"
	gauge   = "gauge"
)

// writeMetrics writes everything that the agent knows of itself.
func (a *Agent) writeMetrics(w io.Writer) {
	p := &page{w, map[string]bool{}}
	m := &a.metrics
	m.mu.Lock()
	q, weights, units := m.quality, maps.Clone(m.weights), maps.Clone(m.units)
	samples, lost, throttled, parts := m.samples, m.lost, m.throttled, m.parts
	m.mu.Unlock()

	p.put("candid_build_info", gauge, "The version of candid.", 1, "version", a.o.Version)
	p.put("candid_start_time_seconds", gauge, "When the agent was started, since 1970.", seconds(a.began))
	p.put("candid_samples_total", counter, "Samples that were taken and walked.", float64(samples+m.now.Load()))
	p.put("candid_samples_lost_total", counter, "Samples that a full buffer dropped.", float64(lost))
	p.put("candid_samples_throttled_total", counter, "Periods in which the kernel throttled sampling.", float64(throttled))
	const stacks, stacksHelp = "candid_stacks_total", "Stacks of samples by how certain they are, and the broken and truncated ones by how they end."
	for _, e := range []struct {
		end string
		n   uint64
	}{{"complete", q.Complete}, {"stitched", q.Stitched}, {"unnamed", q.Unnamed}, {"heuristic", q.Heuristic}} {
		p.put(stacks, counter, stacksHelp, float64(e.n), "end", e.end, "reason", "")
	}
	for end, n := range q.Reasons {
		if e := walk.End(end); e != walk.EndComplete && (n > 0 || e == walk.EndTruncated) {
			kind := "broken"
			if e == walk.EndTruncated {
				kind = "truncated"
			}
			p.put(stacks, counter, stacksHelp, float64(n), "end", kind, "reason", e.String())
		}
	}
	for _, e := range slices.Sorted(maps.Keys(weights)) {
		v := float64(weights[e])
		if units[e] == "nanoseconds" {
			p.put("candid_sampled_seconds_total", counter, "Time that samples stand for, by event.", v/1e9, "event", e)
		}
	}
	p.put("candid_parts_total", counter, "Profiles that were made for the store and for servers.", float64(parts))
	p.put("candid_recording_restarts_total", counter, "How often recording was begun anew.", float64(m.restarts.Load()))
	p.put("candid_config_refused_total", counter, "Files that were read at SIGHUP and not put in force.", float64(m.refused.Load()))

	times, _ := a.rate()
	rate := a.config().Rate
	p.put("candid_rate_hertz", gauge, "Samples taken each second of CPU time.", rate/float64(times))
	p.put("candid_rate_configured_hertz", gauge, "Samples asked for each second of CPU time.", rate)
	p.put("candid_cpu_seconds_total", counter, "CPU time that the agent itself used.", hostinfo.OwnCPU().Seconds())
	if resident, peak, err := hostinfo.Memory(os.Getpid()); err == nil {
		p.put("candid_memory_bytes", gauge, "Resident memory of the agent itself.", float64(resident))
		p.put("candid_memory_peak_bytes", gauge, "The most of it so far.", float64(peak))
	}
	p.put("candid_captures_total", counter, "Captures on demand, by outcome.", float64(a.capture.done.Load()), "outcome", "stored")
	p.put("candid_captures_total", counter, "", float64(a.capture.failed.Load()), "outcome", "failed")
	p.put("candid_captures_total", counter, "", float64(a.capture.refused.Load()), "outcome", "refused")
	p.put("candid_captures_running", gauge, "Captures under way.", float64(a.capture.running.Load()))

	s := a.present()
	if s.store != nil {
		p.put("candid_store_bytes", gauge, "Size of the store.", float64(s.store.Size()))
		p.put("candid_store_errors_total", counter, "Profiles that could not be stored.", float64(m.storeErrors.Load()))
		if at := m.stored.Load(); at != 0 {
			p.put("candid_store_last_seconds", gauge, "End of the last profile in the store, since 1970.", float64(at)/1e9)
		}
	}
	for _, t := range s.pushes {
		p.pushed(t.pusher.Stats())
	}
}

// pushed writes what became of profiles for one server.
func (p *page) pushed(s push.Stats) {
	at := []string{"endpoint", s.URL, "type", s.Type}
	with := func(reason string) []string { return append(slices.Clone(at), "reason", reason) }
	p.put("candid_push_sent_total", counter, "Profiles that a server took.", float64(s.Sent), at...)
	p.put("candid_push_sent_bytes_total", counter, "Bytes of messages that a server took.", float64(s.SentBytes), at...)
	for _, k := range []struct {
		name, help string
		n          map[string]uint64
	}{
		{"candid_push_dropped_total", "Profiles that were not sent.", s.Dropped},
		{"candid_push_retried_total", "Attempts that failed and were repeated.", s.Retried},
		{"candid_push_ambiguous_total", "Profiles that may have arrived, and were not sent again.", s.Ambiguous},
	} {
		if len(k.n) == 0 {
			p.put(k.name, counter, k.help, 0, with("")...)
		}
		for _, reason := range slices.Sorted(maps.Keys(k.n)) {
			p.put(k.name, counter, k.help, float64(k.n[reason]), with(reason)...)
		}
	}
	p.put("candid_push_unsent", gauge, "Profiles that wait to be sent.", float64(s.Unsent), at...)
	p.put("candid_push_buffer_bytes", gauge, "Bytes of what waits to be sent.", float64(s.Bytes), at...)
	p.put("candid_push_oldest_unsent_seconds", gauge, "Age of the oldest profile that waits; 0 if none does.", s.OldestUnsent().Seconds(), at...)
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
