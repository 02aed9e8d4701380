// Package collapsed writes and reads folded stacks: a line for each different
// stack, its frames outermost first and joined by semicolons, a space, and a
// number. It is what flamegraph.pl, speedscope and scripts read.
package collapsed

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Options say what the lines hold.
type Options struct {
	// Threads makes the thread the first frame: "[main tid=4712]".
	Threads bool
	// Kinds puts the kind of a frame behind its name, as async-profiler does:
	// _[j] compiled, _[i] inlined, _[k] kernel, _[1] C1, _[0] interpreted.
	Kinds bool
	// Weights gives the event's weight in its unit instead of samples.
	Weights bool
	// Event is the index into Events that is written.
	Event int
}

// suffixes are those of async-profiler, which has none for native code and stubs.
// https://github.com/async-profiler/async-profiler/blob/master/docs/OutputFormats.md
var suffixes = [walk.NumKinds]string{
	walk.KindKernel:       "_[k]",
	walk.KindInterpreted:  "_[0]",
	walk.KindCompiled:     "_[j]",
	walk.KindC1:           "_[1]",
	walk.KindC2:           "_[j]",
	walk.KindInlined:      "_[i]",
	walk.KindNativeMethod: "_[j]",
	walk.KindAOT:          "_[j]",
}

// kindOf is what a suffix is read as: it says less than a kind.
func kindOf(name string) (string, walk.Kind) {
	if len(name) <= 4 {
		return name, walk.KindUnknown
	}
	cut := len(name) - 4
	switch name[cut:] {
	case "_[k]":
		return name[:cut], walk.KindKernel
	case "_[0]":
		return name[:cut], walk.KindInterpreted
	case "_[j]":
		return name[:cut], walk.KindCompiled
	case "_[1]":
		return name[:cut], walk.KindC1
	case "_[i]":
		return name[:cut], walk.KindInlined
	}
	return name, walk.KindUnknown
}

// escape replaces what the format has no room for. Readers know no escapes, so
// a comma stands for a semicolon, as a space does for the end of a line.
var escape = strings.NewReplacer(";", ",", "\n", " ", "\r", " ", "\x00", " ")

// Name is a function's name as the format has it.
func Name(name string) string {
	if name = escape.Replace(name); name == "" {
		return "[unknown]"
	}
	return name
}

// group is what lines have in common that stand beside each other.
type group struct {
	event  uint16
	thread uint32
	end    walk.End
}

// Write writes p stack by stack. Equal stacks are one line; the lines' order
// depends only on p.
func Write(w io.Writer, p *profile.Profile, o Options) error {
	names, nameOf := frameNames(p, o.Kinds)
	merged, of := mergeNodes(p, nameOf)
	threads := threadNames(p)

	out := bufio.NewWriterSize(w, 64<<10)
	var path, stacks []uint32
	var buf []byte
	counts := make([]uint64, merged.Len())
	for _, part := range parts(p, o) {
		stacks = stacks[:0]
		for _, i := range part.Samples {
			s := &p.Samples[i]
			n := of[s.Node]
			if counts[n] == 0 {
				stacks = append(stacks, n)
			}
			if o.Weights {
				counts[n] += s.Weight
			} else {
				counts[n]++
			}
		}
		slices.Sort(stacks)
		for _, node := range slices.Compact(stacks) { // a weight of 0 brings one twice
			buf = buf[:0]
			if o.Threads {
				buf = append(append(buf, threads[part.Key.thread]...), ';')
			}
			if part.Key.end != walk.EndComplete {
				buf = append(append(buf, part.Key.end.Frame()...), ';')
			}
			path = path[:0]
			for n := node; n != profile.RootNode; n = merged.At(n).Parent {
				path = append(path, merged.At(n).Frame)
			}
			for _, name := range slices.Backward(path) {
				buf = append(append(buf, names[name]...), ';')
			}
			if len(buf) == 0 {
				buf = append(buf, "[no stack];"...)
			}
			buf[len(buf)-1] = ' '
			buf = strconv.AppendUint(buf, counts[node], 10)
			buf = append(buf, '\n')
			if _, err := out.Write(buf); err != nil {
				return fmt.Errorf("write collapsed stacks: %w", err)
			}
			counts[node] = 0
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write collapsed stacks: %w", err)
	}
	return nil
}

// frameNames gives the different texts of frames, and the index of each frame's.
func frameNames(p *profile.Profile, kinds bool) (names []string, of []uint32) {
	seen := map[string]uint32{}
	of = make([]uint32, len(p.Frames))
	for i, f := range p.Frames {
		name := Name(p.Funcs[f.Func].Name)
		if kinds {
			name += suffixes[f.Kind]
		}
		at, ok := seen[name]
		if !ok {
			at = uint32(len(names))
			names = append(names, name)
			seen[name] = at
		}
		of[i] = at
	}
	return names, of
}

// mergeNodes makes the trie of names, in which stacks that differ only in lines
// or addresses are one.
func mergeNodes(p *profile.Profile, nameOf []uint32) (*profile.Trie, []uint32) {
	merged := profile.NewTrie()
	of := make([]uint32, len(p.Nodes))
	for i := 1; i < len(p.Nodes); i++ {
		n := p.Nodes[i]
		of[i] = merged.Child(of[n.Parent], nameOf[n.Frame])
	}
	merged.Seal()
	return merged, of
}

// parts gives the samples of the event that is written, those apart that are not to
// be counted together even if their stacks are equal.
func parts(p *profile.Profile, o Options) []profile.Part[group] {
	list := profile.Parts(p, func(s *profile.Sample) group {
		g := group{event: s.Event, end: s.End}
		if o.Threads {
			g.thread = s.Thread
		}
		return g
	})
	list = slices.DeleteFunc(list, func(p profile.Part[group]) bool { return int(p.Key.event) != o.Event })
	slices.SortFunc(list, func(a, b profile.Part[group]) int {
		return cmp.Or(cmp.Compare(a.Key.thread, b.Key.thread), cmp.Compare(a.Key.end, b.Key.end))
	})
	return list
}

func threadNames(p *profile.Profile) []string {
	names := make([]string, len(p.Threads))
	for i, t := range p.Threads {
		names[i] = escape.Replace(fmt.Sprintf("[%s tid=%d]", t.Name, t.TID))
	}
	return names
}
