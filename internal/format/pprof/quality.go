package pprof

import (
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// qualityLabel returns how certain a sample's stack is, as the value of its label "stack":
// complete, stitched, unnamed, heuristic, truncated, "broken: REASON". For a broken stack, what
// else is uncertain follows after a comma.
func qualityLabel(end walk.End, flags profile.SampleFlags) string {
	var words []string
	switch {
	case end == walk.EndTruncated:
		words = append(words, "truncated")
	case end != walk.EndComplete:
		words = append(words, "broken: "+end.String())
	}
	if flags&profile.Guessed != 0 {
		words = append(words, "heuristic")
	}
	if flags&profile.Unnamed != 0 {
		words = append(words, "unnamed")
	}
	if flags&profile.Stitched != 0 {
		words = append(words, "stitched")
	}
	if len(words) == 0 {
		return "complete"
	}
	return strings.Join(words, ", ")
}

// parseQuality reads what qualityLabel writes. Unknown words, of another version, are ignored.
func parseQuality(label string) (end walk.End, flags profile.SampleFlags) {
	for word := range strings.SplitSeq(label, ", ") {
		switch {
		case word == "truncated":
			end = walk.EndTruncated
		case word == "heuristic":
			flags |= profile.Guessed
		case word == "unnamed":
			flags |= profile.Unnamed
		case word == "stitched":
			flags |= profile.Stitched
		case strings.HasPrefix(word, "broken: "):
			end = walk.EndNoRule
			for e := walk.End(0); e < walk.NumEnds; e++ {
				if e.String() == word[len("broken: "):] {
					end = e
				}
			}
		}
	}
	return end, flags
}

// place is what a Mapping stands for: a module, and the properties that all frames in it share.
type place struct {
	module string
	kind   walk.Kind
	prov   walk.Provenance
	flags  walk.FrameFlags // only keptFlags
}

var flagWords = []struct {
	flag walk.FrameFlags
	word string
}{{walk.Virtual, "virtual"}, {walk.Stitched, "stitched"}, {walk.Coarse, "coarse"}, {walk.Skid, "skid"}}

// kernelModule is the module of frames of the kernel itself.
const kernelModule = "[kernel]"

// usualKind returns the kind of frames of a module unless a word says otherwise.
func usualKind(module string) walk.Kind {
	switch module {
	case "":
		return walk.KindUnknown
	case kernelModule:
		return walk.KindKernel
	}
	return walk.KindNative
}

// mappingName returns the place as the name of a Mapping: the module, and in brackets what is
// unusual for it: "libjvm.so", "[C2]", "[C2, coarse]", "libfoo.so [native, heuristic]". pprof has
// no field for these, keeps the name when it merges, and does not look for files whose names are in
// brackets.
func (pl place) mappingName() string {
	if pl.kind == usualKind(pl.module) && pl.prov == walk.Exact && pl.flags == 0 {
		return pl.module
	}
	name := "[" + profile.KindName(pl.kind)
	switch pl.prov {
	case walk.Derived:
		name += ", derived"
	case walk.Heuristic:
		name += ", heuristic"
	}
	for _, f := range flagWords {
		if pl.flags&f.flag != 0 {
			name += ", " + f.word
		}
	}
	name += "]"
	if pl.module != "" {
		name = pl.module + " " + name
	}
	return name
}

// parseMapping reads what mappingName writes, and takes other names for modules.
func parseMapping(name string) place {
	plain := place{module: name, kind: usualKind(name)}
	if name == kernelModule || !strings.HasSuffix(name, "]") {
		return plain
	}
	at := strings.LastIndexByte(name, '[')
	if at < 0 || at > 0 && name[at-1] != ' ' {
		return plain
	}
	words := strings.Split(name[at+1:len(name)-1], ", ")
	pl := place{module: strings.TrimSuffix(name[:at], " ")}
	kind, ok := profile.KindByName(words[0])
	if !ok {
		return plain
	}
	pl.kind = kind
	for _, w := range words[1:] {
		switch w {
		case "derived":
			pl.prov = walk.Derived
			continue
		case "heuristic":
			pl.prov = walk.Heuristic
			continue
		}
		known := false
		for _, f := range flagWords {
			if f.word == w {
				pl.flags |= f.flag
				known = true
			}
		}
		if !known {
			return plain
		}
	}
	return pl
}
