package record

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// If a timer's interrupt came late, where the kernel enables interrupts again, its sample counts
// for the function before: in lists, trees and graphs, also from a written file. The raw frames are
// kept.
func TestSkid(t *testing.T) {
	target := fixture.Start(t, exec.Command(fixture.C(t, `
#include <stdio.h>
#include <unistd.h>
int main() {
	char b[64] = {0};
	puts("ready");
	fflush(stdout);
	for (;;) {
		int p[2];
		if (pipe(p)) return 1;
		if (write(p[1], b, sizeof b) < 0 || read(p[0], b, sizeof b) < 0) return 1;
		close(p[0]);
		close(p[1]);
	}
}
`)))
	target.Await("ready")
	p := run(t, Options{PIDs: []int{target.PID()}, Duration: time.Second}).Profile
	marked := map[uint32]bool{} // functions of marked frames
	for _, f := range p.Frames {
		if f.Flags&walk.Skid != 0 {
			marked[f.Func] = true
		}
	}
	if len(marked) == 0 {
		t.Skipf("none of %d samples lies where interrupts are enabled: the kernel has no such functions, or hides their names", p.SampleCount())
	}
	noted := false
	for _, n := range p.Meta.Notes {
		noted = noted || strings.Contains(n, "were taken where the kernel enabled interrupts again")
	}
	if !noted {
		t.Errorf("nothing is said of it: %q", p.Meta.Notes)
	}
	var file bytes.Buffer
	if err := jfr.Write(&file, p); err != nil {
		t.Fatal(err)
	}
	read, err := jfr.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for what, p := range map[string]*profile.Profile{"recorded": p, "read": read} {
		shown, raw := selfOfMarked(p, profile.Filter{}), selfOfMarked(p, profile.Filter{Raw: true})
		if raw.at == 0 || shown.at != 0 || shown.all != raw.all {
			t.Errorf("%s: of %d samples %d are where interrupts are enabled, of %d raw ones %d", what, shown.all, shown.at, raw.all, raw.at)
		}
		tree, err := flame.Merge(p)
		if err != nil {
			t.Fatal(err)
		}
		var all, at uint64
		for _, c := range tree.Cells {
			all += uint64(c.Count)
			if n := tree.Order[c.Node]; n != 0 && skidNames(p)[p.Funcs[tree.Symbols[tree.Nodes.At(n).Frame].Func].Name] {
				at += uint64(c.Count)
			}
		}
		if all != raw.all || at != 0 {
			t.Errorf("%s: of %d samples of the graph %d are where interrupts are enabled", what, all, at)
		}
	}
}

func skidNames(p *profile.Profile) map[string]bool {
	names := map[string]bool{}
	for _, f := range p.Frames {
		if f.Flags&walk.Skid != 0 {
			names[p.Funcs[f.Func].Name] = true
		}
	}
	return names
}

// selfOfMarked counts samples, and those in functions that have marked frames.
func selfOfMarked(p *profile.Profile, f profile.Filter) (n struct{ all, at uint64 }) {
	s, names := p.Select(f), skidNames(p)
	for _, m := range s.List() {
		n.all += m.Self.Samples
		if names[s.Func(m.Method).Name] {
			n.at += m.Self.Samples
		}
	}
	return n
}
