package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
)

// truth compares the split that candid sees with the one that the program measured itself.
func (b *bench) truth() {
	for _, jdk := range []string{"17", "25"} {
		secs := b.seconds(30)
		what := fmt.Sprintf("total variation distance to the truth, JDK %s, 1 kHz, %d s", jdk, secs)
		r := row{Section: "truth", What: what, Unit: "%", Bar: "≤ 0.5 %"}
		cp, err := b.compile(jdk, "Truth.java")
		if err == nil {
			var rec *recording
			rec, err = b.launch([]string{"-F", "1000"}, b.java(jdk), "-cp", cp, "Truth", fmt.Sprint(secs))
			if err == nil {
				r.Value, r.Note, err = truthDistance(rec)
			}
		}
		if err != nil {
			r.Failed = err.Error()
		}
		b.add(r)
	}
}

// truthDistance returns the total variation distance, in percent, between the program's own account
// of its phases and the samples below Truth.measured.
func truthDistance(rec *recording) (float64, string, error) {
	var truth map[string]float64
	if err := json.Unmarshal([]byte(lastLine(rec.stdout)), &truth); err != nil {
		return 0, "", fmt.Errorf("the program's truth: %w", err)
	}
	seen, all, lost := phases(rec.profile)
	if all == 0 {
		return 0, "", fmt.Errorf("no sample shows a phase")
	}
	var total, distance float64
	for _, v := range truth {
		total += v
	}
	worst, worstBy := "", 0.0
	for phase, v := range truth {
		d := seen[phase]/all - v/total
		distance += math.Abs(d) / 2
		if math.Abs(d) > math.Abs(worstBy) {
			worst, worstBy = phase, d
		}
	}
	note := fmt.Sprintf("%d samples; furthest off: %s by %+.2f points; stacks cut below the phase: %.3f %%", len(rec.profile.Samples), worst, 100*worstBy, 100*lost/(all+lost))
	return 100 * distance, note, nil
}

// phases adds up by phase what a profile of Truth shows below Truth.measured; lost is the weight of
// stacks that show a phase but not its caller.
func phases(p *profile.Profile) (seen map[string]float64, all, lost float64) {
	seen = map[string]float64{}
	for _, s := range p.Samples {
		phase, measured, main := "", false, false
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			name := p.Funcs[p.Frames[p.Nodes[n].Frame].Func].Name
			if rest, ok := strings.CutPrefix(name, "Truth$"); ok {
				if cls, method, _ := strings.Cut(rest, "."); method == "run" {
					phase = cls
				}
			}
			measured = measured || name == "Truth.measured"
			main = main || name == "Truth.main"
		}
		switch {
		case measured && phase != "":
			seen[phase] += float64(s.Weight)
			all += float64(s.Weight)
		case !main && (phase != "" || measured):
			lost += float64(s.Weight)
		}
	}
	return seen, all, lost
}

// inline checks the split of two methods that are inlined into one.
func (b *bench) inline() {
	for _, jdk := range []string{"17", "25"} {
		r := row{Section: "inline", What: fmt.Sprintf("inlined 70:30 split, distance from 70, JDK %s", jdk), Unit: "points", Bar: "≤ 3 points"}
		cp, err := b.compile(jdk, "InlineSplit.java")
		if err == nil {
			var rec *recording
			rec, err = b.launch([]string{"-F", "1000"}, b.java(jdk), "-cp", cp, "InlineSplit", fmt.Sprint(b.seconds(10)))
			if err == nil {
				inA, inB := 0.0, 0.0
				p := rec.profile
				for _, s := range p.Samples {
					for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
						switch p.Funcs[p.Frames[p.Nodes[n].Frame].Func].Name {
						case "InlineSplit.a":
							inA++
						case "InlineSplit.b":
							inB++
						default:
							continue
						}
						break
					}
				}
				if inA+inB == 0 {
					err = fmt.Errorf("no sample shows a or b")
				} else {
					share := 100 * inA / (inA + inB)
					r.Value, r.Note = math.Abs(share-70), fmt.Sprintf("seen: %.1f %% of %.0f samples", share, inA+inB)
				}
			}
		}
		if err != nil {
			r.Failed = err.Error()
		}
		b.add(r)
	}
}
