// Package collapsed writes and reads folded stacks: a line for each distinct stack, its frames
// outermost first and joined by semicolons, a space, and a number. flamegraph.pl, speedscope and
// scripts read this format.
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

// Options select what the lines hold.
type Options struct {
	// Threads makes the thread the first frame: "[main tid=4712]".
	Threads bool
	// Kinds appends the kind of a frame to its name, as async-profiler does: _[j] compiled, _[i]
	// inlined, _[k] kernel, _[1] C1, _[0] interpreted.
	Kinds bool
	// Weights writes the event's weight in its unit instead of the number of samples.
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
	walk.KindTier0:        "_[1]",
	walk.KindInstrumented: "_[1]",
	walk.KindOSR:          "_[j]",
	walk.KindTier1:        "_[j]",
	walk.KindReadyToRun:   "_[j]",
}

// kindOf returns the kind that a suffix is read as: it carries less information than a kind.
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

// escape replaces characters that the format cannot hold. Readers know no escapes, so a comma
// replaces a semicolon, and a space the end of a line.
var escape = strings.NewReplacer(";", ",", "\n", " ", "\r", " ", "\x00", " ")

// Name returns a function's name in the form of the format.
func Name(name string) string {
	if name = escape.Replace(name); name == "" {
		return "[unknown]"
	}
	return name
}

// line is a stack and its count.
type line struct {
	thread uint32
	node   uint32
	end    walk.End
	count  uint64
}

func (l line) compare(o line) int {
	return cmp.Or(cmp.Compare(l.thread, o.thread), cmp.Compare(l.end, o.end), cmp.Compare(l.node, o.node))
}

// Write writes p stack by stack. Equal stacks are one line; the order of lines depends only on p.
// Frames in which samples came late (walk.Skid) are left out, as in reports: the format cannot mark
// them.
func Write(w io.Writer, p *profile.Profile, o Options) error {
	names, nameOf := frameNames(p, o.Kinds)
	merged, of := mergeNodes(p, nameOf)
	threads := threadNames(p)

	out := bufio.NewWriterSize(w, 64<<10)
	var path []uint32
	var buf []byte
	for _, l := range lines(p, of, o) {
		buf = buf[:0]
		if o.Threads {
			buf = append(append(buf, threads[l.thread]...), ';')
		}
		if l.end != walk.EndComplete {
			buf = append(append(buf, l.end.Frame()...), ';')
		}
		path = path[:0]
		for n := l.node; n != profile.RootNode; n = merged.At(n).Parent {
			path = append(path, merged.At(n).Frame)
		}
		for _, name := range slices.Backward(path) {
			buf = append(append(buf, names[name]...), ';')
		}
		if len(buf) == 0 {
			buf = append(buf, "[no stack];"...)
		}
		buf[len(buf)-1] = ' '
		buf = strconv.AppendUint(buf, l.count, 10)
		buf = append(buf, '\n')
		if _, err := out.Write(buf); err != nil {
			return fmt.Errorf("write collapsed stacks: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write collapsed stacks: %w", err)
	}
	return nil
}

// frameNames returns the distinct texts of frames, and the index of each frame's text.
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

// mergeNodes returns the trie of names, in which stacks that differ only in lines or addresses are
// one.
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

// lines counts the stacks of the event that is written. Stacks that must not be counted together
// stay separate even if they are equal.
func lines(p *profile.Profile, of []uint32, o Options) []line {
	var list []line
	profile.Summed(p).Each(func(s *profile.Sample, n uint64) {
		if int(s.Event) != o.Event {
			return
		}
		l := line{end: s.End, node: of[p.BeforeSkid(s.Node)], count: n}
		if o.Threads {
			l.thread = s.Thread
		}
		if o.Weights {
			l.count = s.Weight
		}
		list = append(list, l)
	})
	slices.SortFunc(list, line.compare)
	kept := list[:0]
	for _, l := range list {
		if last := len(kept) - 1; last >= 0 && kept[last].compare(l) == 0 {
			kept[last].count += l.count
		} else {
			kept = append(kept, l)
		}
	}
	return kept
}

func threadNames(p *profile.Profile) []string {
	names := make([]string, len(p.Threads))
	for i, t := range p.Threads {
		names[i] = escape.Replace(fmt.Sprintf("[%s tid=%d]", t.Name, t.TID))
	}
	return names
}
