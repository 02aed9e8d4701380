// Package diff compares two recordings: what takes more, what takes less, what is new and what has
// vanished, and whether chance alone explains it.
package diff

import (
	"path"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/javaname"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Join puts two recordings into one: the threads from second on are those of after. Events are the
// same if name and unit are. Functions are the same if their names are, without what a runtime
// numbers anew in each run: programs and libraries are often renamed from one version to the next.
// Only if one recording has a name in several modules, the last parts of the modules' paths
// distinguish them. With oneKind a function has one kind in all of its frames, the one it had most:
// how much of it was compiled when differs from run to run, and would make two stacks of one.
// Samples are then summed up, as by profile.Weighed. If both together have too many labels, a note
// of the result says so. The profiles must have passed Check or come from a Builder; they stay as
// they are.
func Join(before, after *profile.Profile, oneKind bool) (p *profile.Profile, second uint32) {
	j := joiner{oneKind: oneKind, b: profile.NewBuilder(), seen: map[funcKey]uint32{}, several: map[string]bool{}}
	if oneKind {
		j.b.Keep(profile.KeepWeights)
	}
	j.findSeveral(before)
	j.findSeveral(after)
	of := [2][]uint32{j.functions(before), j.functions(after)}
	j.weigh(before, of[0])
	j.weigh(after, of[1])
	j.add(before, of[0])
	second = uint32(len(j.b.Threads()))
	j.add(after, of[1])
	j.b.Meta().NoteUnlabeled(j.unlabeled)
	return j.b.Finish(), second
}

// joiner merges functions first, so that everything about one is known before its first frame is
// made.
type joiner struct {
	b       *profile.Builder
	seen    map[funcKey]uint32
	funcs   []profile.Func
	kinds   [][walk.NumKinds]uint64 // by function: samples
	several map[string]bool         // names that one recording has in several modules
	oneKind bool

	unlabeled uint64 // samples that lost labels
}

type funcKey struct{ name, module string }

// findSeveral finds the names that p has in several modules.
func (j *joiner) findSeveral(p *profile.Profile) {
	module := make(map[string]string, len(p.Funcs))
	for i := range p.Funcs {
		name, m := plain(p.Funcs[i].Name), path.Base(p.Funcs[i].Module)
		if first, ok := module[name]; !ok {
			module[name] = m
		} else if first != m {
			j.several[name] = true
		}
	}
}

// functions returns the merged function for each of p's functions.
func (j *joiner) functions(p *profile.Profile) []uint32 {
	of := make([]uint32, len(p.Funcs))
	for i, f := range p.Funcs {
		f.Name = plain(f.Name)
		k := funcKey{name: f.Name}
		if j.several[f.Name] {
			k.module = path.Base(f.Module)
		}
		at, ok := j.seen[k]
		if !ok {
			at = uint32(len(j.funcs))
			j.seen[k] = at
			j.funcs = append(j.funcs, f)
			j.kinds = append(j.kinds, [walk.NumKinds]uint64{})
		}
		of[i] = at
		// A property that is not the same in all of them is dropped.
		if same := &j.funcs[at]; ok {
			if same.Raw != f.Raw {
				same.Raw = ""
			}
			if same.Signature != f.Signature {
				same.Signature = ""
			}
			if same.File == "" {
				same.File = f.File
			}
			if same.Module == "" {
				same.Module = f.Module
			}
			same.NoName = same.NoName && f.NoName
		}
	}
	return of
}

// generated are parts of names that a JVM numbers anew in each run. candid's own recordings do not
// have them, collapsed stacks and pprof files of other tools do.
var generated = []string{"$$Lambda", "$Proxy", "GeneratedMethodAccessor", "GeneratedConstructorAccessor", "GeneratedSerializationConstructorAccessor", "LambdaForm$", "/0x", "+0x", ".0x"}

// plain returns a function's name without its generated parts.
func plain(name string) string {
	for _, g := range generated {
		if !strings.Contains(name, g) {
			continue
		}
		dot := strings.LastIndexByte(name, '.')
		if dot <= 0 || strings.HasPrefix(name[dot:], ".0x") {
			return name
		}
		class := name[:dot]
		if i := strings.LastIndex(class, ".0x"); i > 0 {
			class = class[:i] + "+" + class[i+1:]
		}
		name, _ = javaname.Function(class, name[dot+1:])
		return name
	}
	return name
}

// weigh counts the kinds of each function's frames.
func (j *joiner) weigh(p *profile.Profile, of []uint32) {
	passed := make([]uint64, len(p.Nodes))
	p.Each(func(s *profile.Sample, n uint64) { passed[s.Node] += n })
	for i := len(passed) - 1; i > 0; i-- {
		n := p.Nodes[i]
		passed[n.Parent] += passed[i]
		f := &p.Frames[n.Frame]
		j.kinds[of[f.Func]][f.Kind] += passed[i]
	}
}

// kind returns the most frequent kind of a function; unknown kinds do not count.
func (j *joiner) kind(f uint32) walk.Kind {
	best := walk.KindUnknown
	for k := range walk.NumKinds {
		if n := j.kinds[f][k]; k != walk.KindUnknown && n > 0 && (best == walk.KindUnknown || n > j.kinds[f][best]) {
			best = k
		}
	}
	return best
}

// add adds all of p. Its processes and threads stay separate from those already there.
func (j *joiner) add(p *profile.Profile, of []uint32) {
	b := j.b
	out := b.Profile()
	events := make([]uint16, len(p.Events))
	for i, e := range p.Events {
		at, ok := out.EventByName(e.Name)
		if !ok || out.Events[at].Unit != e.Unit {
			at = len(out.Events)
			out.Events = append(out.Events, e)
		}
		events[i] = uint16(at)
	}
	for _, x := range p.Processes {
		b.AddProcess(x)
	}
	threads := make([]uint32, len(p.Threads))
	for i, t := range p.Threads {
		threads[i] = b.NewThread(t.PID, t.TID, t.Name)
		b.Threads()[threads[i]] = t
	}
	frames := make([]uint32, len(p.Frames))
	for i, f := range p.Frames {
		merged := of[f.Func]
		if f.Func = b.Func(j.funcs[merged]); j.oneKind {
			f.Kind = j.kind(merged)
		}
		frames[i] = b.Frame(f)
	}
	nodes := make([]uint32, len(p.Nodes))
	for i := 1; i < len(nodes); i++ {
		nodes[i] = b.Node(nodes[p.Nodes[i].Parent], frames[p.Nodes[i].Frame])
	}
	type circumstance struct {
		index        uint16
		known, whole bool
	}
	calls := make([]circumstance, len(p.Syscalls))
	p.Each(func(of *profile.Sample, n uint64) {
		s := *of
		s.Event, s.Thread, s.Node = events[s.Event], threads[s.Thread], nodes[s.Node]
		if len(calls) > 0 {
			c := &calls[s.Syscall]
			if !c.known {
				c.known = true
				c.index, c.whole = b.Labeled(p.Syscalls[s.Syscall], slices.Clone(p.LabelsOf(of)))
			}
			if s.Syscall = c.index; !c.whole {
				j.unlabeled += n
			}
		}
		if j.oneKind {
			b.AddSum(s, n)
		} else {
			b.Add(s)
		}
	})
}
