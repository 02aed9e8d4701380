package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// Equal reports whether two results are the same.
func (r Result) Equal(to Result) bool {
	return r.End == to.End && r.Worst == to.Worst && slices.Equal(r.Frames, to.Frames)
}

// Certainty returns how far the stack can be trusted, but for whether all of its methods have names.
func (r Result) Certainty() profile.Certainty {
	var flags profile.SampleFlags
	if r.Worst == walk.Heuristic {
		flags |= profile.Guessed
	}
	return profile.CertaintyOf(r.End, flags)
}

// Diff returns the lines of the expected result and of another one, those that differ marked by - and +; ""
// if they are the same.
func (r Result) Diff(got Result) string {
	if r.Equal(got) {
		return ""
	}
	want, have := strings.Split(r.String(), "\n"), strings.Split(got.String(), "\n")
	first := 0
	for first < min(len(want), len(have)) && want[first] == have[first] {
		first++
	}
	last := 0
	for last < min(len(want), len(have))-first && want[len(want)-1-last] == have[len(have)-1-last] {
		last++
	}
	var b strings.Builder
	put := func(mark string, lines []string) {
		for _, l := range lines {
			fmt.Fprintf(&b, "%s %s\n", mark, l)
		}
	}
	put(" ", want[:first])
	put("-", want[first:len(want)-last])
	put("+", have[first:len(have)-last])
	put(" ", want[len(want)-last:])
	return b.String()
}

var provenances = [...]string{"exact", "derived", "heuristic"}

func provenance(p walk.Provenance) string {
	if int(p) < len(provenances) {
		return provenances[p]
	}
	return "unknown"
}

// String returns the stack for display, a line for each frame and one for its end. Names are made
// printable, whatever a file says.
func (r Result) String() string {
	var b strings.Builder
	for _, f := range r.Frames {
		name := symbol.Printable(f.Function)
		switch {
		case f.Kind == walk.KindKernel:
			name = "[kernel]"
		case f.Module != "":
			name += " (" + symbol.Printable(f.Module) + ")"
		}
		fmt.Fprintf(&b, "%-19s %-9s %s", profile.KindName(f.Kind), provenance(f.Prov), name)
		for _, flag := range []struct {
			of   walk.FrameFlags
			name string
		}{{walk.Virtual, "virtual thread"}, {walk.Stitched, "read later"}, {walk.Coarse, "coarse"}} {
			if f.Flags&flag.of != 0 {
				b.WriteString(", " + flag.name)
			}
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s; at worst %s", r.End, provenance(r.Worst))
	return b.String()
}
