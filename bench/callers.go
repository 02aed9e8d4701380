package main

import (
	"fmt"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// callers checks the adversarial chain of tiny methods: whichever is on top, all its callers must
// be below it.
func (b *bench) callers() {
	modes := []struct {
		name  string
		flags []string
	}{
		{"default flags", nil},
		{"C1 only", []string{"-XX:TieredStopAtLevel=1"}},
		{"-Xint", []string{"-Xint"}},
		{"PreserveFramePointer", []string{"-XX:+PreserveFramePointer"}},
	}
	for _, jdk := range []string{"8", "11", "17", "21", "25", "27"} {
		for _, m := range modes {
			r := row{Section: "callers", What: fmt.Sprintf("every caller right, JDK %s, %s", jdk, m.name), Unit: "%", Bar: "≥ 99.9 %"}
			cp, err := b.compile(jdk, "Chain.java")
			if err == nil {
				args := append([]string{b.java(jdk)}, m.flags...)
				args = append(args, "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Chain::f*", "-cp", cp, "Chain", fmt.Sprint(b.seconds(6)))
				var rec *recording
				rec, err = b.launch([]string{"-F", "1000"}, args...)
				if err == nil {
					r.Value, r.Note, err = chainRight(rec.profile)
				}
			}
			if err != nil {
				r.Failed = err.Error()
			}
			b.add(r)
		}
	}
}

// chainRight returns the share, in percent, of samples with a method of the chain in which every
// caller down to main is present and in order.
func chainRight(p *profile.Profile) (float64, string, error) {
	right, all := 0, 0
	wrong := map[string]int{}
	for _, s := range p.Samples {
		var chain []string
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			f := &p.Frames[p.Nodes[n].Frame]
			if name := p.Funcs[f.Func].Name; strings.HasPrefix(name, "Chain.") && f.Kind != walk.KindNative {
				chain = append(chain, strings.TrimPrefix(name, "Chain."))
			}
		}
		if len(chain) == 0 || chain[0] == "run" || chain[0] == "main" {
			continue
		}
		all++
		want := wantedChain(chain[0])
		got := strings.Join(chain, " ")
		if got == want && s.End == walk.EndComplete {
			right++
		} else {
			wrong[got+" "+s.End.String()]++
		}
	}
	if all == 0 {
		return 0, "", fmt.Errorf("no sample shows the chain")
	}
	note := fmt.Sprintf("%d of %d samples", right, all)
	most, n := "", 0
	for w, c := range wrong {
		if c > n || c == n && w < most {
			most, n = w, c
		}
	}
	if most != "" {
		note += fmt.Sprintf("; most frequent fault: %s (%d)", most, n)
	}
	return 100 * float64(right) / float64(all), note, nil
}

func wantedChain(leaf string) string {
	var out []string
	for i := int(leaf[len(leaf)-1] - '0'); i >= 1; i-- {
		out = append(out, fmt.Sprintf("f%d", i))
	}
	return strings.Join(append(out, "run", "main"), " ")
}
