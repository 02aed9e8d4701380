package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
)

// shortThreads checks that threads which live for 3 ms get their share.
func (b *bench) shortThreads() {
	r := row{Section: "threads", What: "share of threads that live 3 ms, distance from the truth, 99 Hz", Unit: "%", Bar: "≤ 5 %"}
	cp, err := b.compile("17", "ShortThreads.java")
	if err == nil {
		var rec *recording
		rec, err = b.launch([]string{"-F", "99"}, b.java("17"), "-cp", cp, "ShortThreads", fmt.Sprint(b.seconds(60)))
		if err == nil {
			var truth struct{ Short, Long float64 }
			if err = json.Unmarshal([]byte(lastLine(rec.stdout)), &truth); err == nil {
				short, long := weightUnder(rec.profile, "ShortThreads.shortLife"), weightUnder(rec.profile, "ShortThreads.longLife")
				if short+long == 0 {
					err = fmt.Errorf("no sample shows a thread")
				} else {
					want, got := truth.Short/(truth.Short+truth.Long), short/(short+long)
					r.Value = 100 * math.Abs(got/want-1)
					r.Note = fmt.Sprintf("true share %.2f %%, seen %.2f %%", 100*want, 100*got)
				}
			}
		}
	}
	if err != nil {
		r.Failed = err.Error()
	}
	b.add(r)
}

// weightUnder returns the weight of all samples with a function on the stack.
func weightUnder(p *profile.Profile, name string) float64 {
	w := 0.0
	for _, s := range p.Samples {
		if under(p, s.Node, name) {
			w += float64(s.Weight)
		}
	}
	return w
}

// under reports whether a function is in a stack.
func under(p *profile.Profile, node uint32, name string) bool {
	for ; node != profile.RootNode; node = p.Nodes[node].Parent {
		if p.Funcs[p.Frames[p.Nodes[node].Frame].Func].Name == name {
			return true
		}
	}
	return false
}

// timers checks that tasks on round timers get their share, at rates that could be in lockstep with
// them.
func (b *bench) timers() {
	for _, hz := range []string{"99", "100", "250", "1000"} {
		r := row{Section: "timers", What: "tasks on timers of 4, 5, 10, 20 ms: the one furthest from its share, -F " + hz, Unit: "% off", Bar: "within sampling error"}
		cp, err := b.compile("17", "Timers.java")
		if err == nil {
			var rec *recording
			rec, err = b.launch([]string{"-F", hz}, b.java("17"), "-cp", cp, "Timers", fmt.Sprint(b.seconds(30)))
			if err == nil {
				var truth map[string]float64
				if err = json.Unmarshal([]byte(lastLine(rec.stdout)), &truth); err == nil {
					r.Value, r.Note = furthest(rec.profile, truth)
				}
			}
		}
		if err != nil {
			r.Failed = err.Error()
		}
		b.add(r)
	}
}

// furthest returns the largest relative distance of a thread's weight from its CPU time, with that
// distance in standard deviations of random sampling.
func furthest(p *profile.Profile, truth map[string]float64) (float64, string) {
	seen, samples := map[string]float64{}, map[string]float64{}
	for _, s := range p.Samples {
		name := p.Threads[s.Thread].Name
		seen[name] += float64(s.Weight)
		samples[name]++
	}
	var all, allTrue float64
	for name, v := range truth {
		all += seen[name]
		allTrue += v
	}
	worst, note := 0.0, ""
	var names []string
	for name := range truth {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if all == 0 {
			return 100, "no sample of a task"
		}
		off := seen[name]/all/(truth[name]/allTrue) - 1
		if math.Abs(off) >= math.Abs(worst) {
			worst = off
			sigma := 1 / math.Sqrt(max(1, truth[name]/allTrue*sum(samples)))
			note = fmt.Sprintf("%s: %+.1f %%, sampling error (1σ) %.1f %%", name, 100*off, 100*sigma)
		}
	}
	return 100 * math.Abs(worst), note
}

func sum(m map[string]float64) (s float64) {
	for k, v := range m {
		if strings.HasPrefix(k, "every-") {
			s += v
		}
	}
	return
}

// framesWithNames returns the share, in percent, of frames (counted on stacks) that have a name,
// and the modules of those without.
func framesWithNames(p *profile.Profile) (float64, string) {
	count := make([]uint64, len(p.Nodes))
	for _, s := range p.Samples {
		count[s.Node]++
	}
	var all, without uint64
	modules := map[string]uint64{}
	for n := len(p.Nodes) - 1; n > 0; n-- {
		count[p.Nodes[n].Parent] += count[n]
		f := &p.Funcs[p.Frames[p.Nodes[n].Frame].Func]
		all += count[n]
		if f.NoName {
			without += count[n]
			modules[f.Module] += count[n]
		}
	}
	if all == 0 {
		return 0, "no frames"
	}
	var in []string
	for m, n := range modules {
		in = append(in, fmt.Sprintf("%s %.3f %%", m, 100*float64(n)/float64(all)))
	}
	slices.Sort(in)
	note := ""
	if len(in) > 0 {
		note = "without: " + strings.Join(in, ", ")
	}
	return 100 * float64(all-without) / float64(all), note
}
