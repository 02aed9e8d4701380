package firefox

import (
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// shared writes the tables that all threads refer to. The frames and functions for incomplete
// stacks follow the profile's own.
func (w *writer) shared() {
	p := w.p
	frames, funcs := len(p.Frames), len(p.Funcs)
	allFrames, allFuncs := frames+int(walk.NumEnds), funcs+int(walk.NumEnds)

	n := w.stacks.Len() - 1
	w.raw(`"stackTable":{`)
	w.column("frame", n, func(i int) { w.int(int(w.stacks.At(uint32(i + 1)).Frame)) })
	w.column("prefix", n, func(i int) {
		if parent := w.stacks.At(uint32(i + 1)).Parent; parent == profile.RootNode {
			w.raw("null")
		} else {
			w.int(int(parent - 1))
		}
	})
	w.end(n)

	// Functions of the same name in the same module are one, as people see them: the profiler adds
	// up by function.
	resources, sources := names{}, names{}
	type function struct{ name, module, file string }
	place, first := make([]int, allFuncs), map[function]int{}
	var kept []function
	for i := range allFuncs {
		fn := function{name: walk.End(i - funcs).Frame()}
		if i < funcs {
			f := &p.Funcs[i]
			fn = function{f.Name, f.Module, f.File}
		}
		at, ok := first[fn]
		if !ok {
			at = len(kept)
			first[fn] = at
			kept = append(kept, fn)
		}
		place[i] = at
	}

	frame := func(i int) profile.Frame {
		if i < frames {
			return p.Frames[i]
		}
		return profile.Frame{Func: uint32(funcs + i - frames)}
	}
	w.raw(`,` + "\n" + `"frameTable":{`)
	w.same("address", allFrames, "-1")
	w.column("inlineDepth", allFrames, func(i int) {
		if frame(i).Kind == walk.KindInlined {
			w.raw("1")
		} else {
			w.raw("0")
		}
	})
	w.column("category", allFrames, func(i int) { w.int(category(frame(i).Kind)) })
	w.same("subcategory", allFrames, "0")
	w.column("func", allFrames, func(i int) { w.int(place[frame(i).Func]) })
	w.same("nativeSymbol", allFrames, "null")
	w.same("innerWindowID", allFrames, "null")
	w.column("line", allFrames, func(i int) {
		if line := frame(i).Line; line > 0 {
			w.int(int(line))
		} else {
			w.raw("null")
		}
	})
	w.same("column", allFrames, "null")
	w.end(allFrames)

	w.raw(`,` + "\n" + `"funcTable":{`)
	w.column("name", len(kept), func(i int) { w.int(w.str(kept[i].name)) })
	w.same("isJS", len(kept), "false")
	w.same("relevantForJS", len(kept), "false")
	w.column("resource", len(kept), func(i int) { w.int(resources.index(kept[i].module)) })
	w.column("source", len(kept), func(i int) {
		if at := sources.index(kept[i].file); at >= 0 {
			w.int(at)
		} else {
			w.raw("null")
		}
	})
	w.same("lineNumber", len(kept), "null")
	w.same("columnNumber", len(kept), "null")
	w.end(len(kept))

	const library = 1 // the type of a resource
	w.raw(`,` + "\n" + `"resourceTable":{`)
	w.same("lib", len(resources.list), "null")
	w.column("name", len(resources.list), func(i int) { w.int(w.str(resources.list[i])) })
	w.same("host", len(resources.list), "null")
	w.column("type", len(resources.list), func(int) { w.int(library) })
	w.end(len(resources.list))

	w.raw(`,"nativeSymbols":{"libIndex":[],"address":[],"name":[],"functionSize":[],"length":0},"sources":{`)
	w.same("id", len(sources.list), "null")
	w.column("filename", len(sources.list), func(i int) { w.int(w.str(sources.list[i])) })
	w.same("startLine", len(sources.list), "1")
	w.same("startColumn", len(sources.list), "1")
	w.same("sourceMapURL", len(sources.list), "null")
	w.end(len(sources.list))

	w.raw(`,` + "\n" + `"stringArray":[`)
	for i, s := range w.texts {
		if i > 0 {
			w.raw(",")
		}
		w.text(s)
	}
	w.raw("]")
}

// names numbers texts.
type names struct {
	known map[string]int
	list  []string
}

// index returns the number of a text, -1 for none.
func (n *names) index(s string) int {
	if s == "" {
		return -1
	}
	i, ok := n.known[s]
	if !ok {
		if n.known == nil {
			n.known = map[string]int{}
		}
		i = len(n.list)
		n.known[s] = i
		n.list = append(n.list, s)
	}
	return i
}
