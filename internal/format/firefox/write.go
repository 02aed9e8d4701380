// Package firefox writes profiles in the format that the Firefox Profiler (profiler.firefox.com)
// reads: its processed format, version 61, which newer versions of it upgrade.
// https://github.com/firefox-devtools/profiler/blob/main/docs-developer/CHANGELOG-formats.md and
// src/types/profile.ts there
package firefox

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Versions of the format that is written, and of the format of Firefox's own recordings from which
// it derives.
const (
	processedVersion = 61
	geckoVersion     = 31
)

// Write writes p: each thread, and each event of it, is a track. The output depends only on p.
// Frames in which samples came late (walk.Skid) are left out, as in reports: the profiler shows
// nothing of a sample beside its stack.
func Write(w io.Writer, p *profile.Profile) error {
	wr := &writer{p: p, w: bufio.NewWriterSize(w, 64<<10), strings: map[string]int{}, stacks: profile.NewTrie(), known: map[uint64]uint32{}}
	wr.write()
	// A bufio.Writer keeps its first error for Flush.
	if err := wr.w.Flush(); err != nil {
		return fmt.Errorf("write firefox: %w", err)
	}
	return nil
}

type writer struct {
	p       *profile.Profile
	w       *bufio.Writer
	strings map[string]int
	texts   []string
	stacks  *profile.Trie     // of frames; followed by the nodes for incomplete stacks
	known   map[uint64]uint32 // stacks by node and end
	path    []uint32
}

func (w *writer) raw(s string) { w.w.WriteString(s) }

func (w *writer) text(s string) {
	b, err := json.Marshal(strings.ToValidUTF8(s, "\uFFFD"))
	if err == nil {
		w.w.Write(b)
	}
}

// str returns the index of a string in the table, which is written last.
func (w *writer) str(s string) int {
	i, ok := w.strings[s]
	if !ok {
		i = len(w.texts)
		w.strings[s] = i
		w.texts = append(w.texts, s)
	}
	return i
}

// column writes a list of n values.
func (w *writer) column(name string, n int, each func(i int)) {
	w.raw(`"` + name + `":[`)
	for i := range n {
		if i > 0 {
			w.raw(",")
		}
		each(i)
	}
	w.raw("],")
}

func (w *writer) int(n int) { w.w.Write(strconv.AppendInt(w.w.AvailableBuffer(), int64(n), 10)) }

// same writes a list of n equal values.
func (w *writer) same(name string, n int, what string) {
	w.column(name, n, func(int) { w.raw(what) })
}

// end closes a table.
func (w *writer) end(n int) { w.raw(fmt.Sprintf(`"length":%d}`, n)) }

// milliseconds writes ns.
func (w *writer) milliseconds(ns uint64) {
	w.w.Write(strconv.AppendFloat(w.w.AvailableBuffer(), float64(ns)/1e6, 'f', -1, 64))
}

// categories are the kinds of frames, with the colours that the profiler has. The first grey one is
// the default.
var categories = []struct {
	name, color string
	kinds       []walk.Kind
}{
	{"Other", "grey", []walk.Kind{walk.KindUnknown}},
	{"Kernel", "orange", []walk.Kind{walk.KindKernel}},
	{"Native", "blue", []walk.Kind{walk.KindNative}},
	{"Interpreted", "red", []walk.Kind{walk.KindInterpreted}},
	{"Compiled", "green", []walk.Kind{walk.KindCompiled, walk.KindC2, walk.KindAOT, walk.KindTier1, walk.KindOSR, walk.KindReadyToRun}},
	{"Compiled (C1)", "lightblue", []walk.Kind{walk.KindC1}},
	{"Compiled (Tier-0)", "lightblue", []walk.Kind{walk.KindTier0, walk.KindInstrumented}},
	{"Inlined", "yellow", []walk.Kind{walk.KindInlined}},
	{"Stub", "purple", []walk.Kind{walk.KindStub, walk.KindNativeMethod}},
}

func category(k walk.Kind) int {
	for i, c := range categories {
		if slices.Contains(c.kinds, k) {
			return i
		}
	}
	return 0
}

func (w *writer) write() {
	w.raw(`{"meta":{`)
	w.meta()
	w.raw(`},"libs":[],"threads":[`)
	tracks := w.tracks()
	for i := range tracks {
		if i > 0 {
			w.raw(",\n")
		}
		w.thread(&tracks[i])
	}
	w.raw("],\n" + `"shared":{`)
	w.shared()
	w.raw("}}\n")
}

func (w *writer) meta() {
	p := w.p
	w.raw(`"interval":`)
	interval := uint64(1e6)
	if len(p.Events) > 0 && p.Events[0].Unit == "nanoseconds" && p.Events[0].Period > 0 {
		interval = p.Events[0].Period
	}
	w.milliseconds(interval)
	w.raw(`,"startTime":`)
	if p.Meta.Start.IsZero() {
		w.raw("0")
	} else {
		w.milliseconds(uint64(max(p.Meta.Start.UnixNano(), 0)))
	}
	w.raw(fmt.Sprintf(`,"processType":0,"stackwalk":1,"version":%d,"preprocessedProfileVersion":%d,"markerSchema":[],`, geckoVersion, processedVersion))
	w.raw(`"symbolicated":true,"symbolicationNotSupported":true,"usesOnlyOneStackType":true,"sourceCodeIsNotOnSearchfox":true,` +
		`"sampleUnits":{"time":"ms","eventDelay":"ms","threadCPUDelta":"ns"},"importedFrom":"candid","product":`)
	w.text(cmp.Or(p.Meta.Command, "candid"))
	w.raw(`,"categories":[`)
	for i, c := range categories {
		if i > 0 {
			w.raw(",")
		}
		w.raw(fmt.Sprintf(`{"name":%q,"color":%q,"subcategories":["Other"]}`, c.name, c.color))
	}
	w.raw("]")
}

// tracks returns the threads with their samples in the order of time: the threads of a process
// together, its first thread first, then the busiest.
func (w *writer) tracks() []profile.TrackSamples {
	list := profile.ByTrack(w.p)
	slices.SortFunc(list, func(a, b profile.TrackSamples) int {
		x, y := &w.p.Threads[a.Thread], &w.p.Threads[b.Thread]
		main := func(t *profile.Thread) int {
			if t.TID == t.PID {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(x.PID, y.PID), cmp.Compare(a.Event, b.Event), cmp.Compare(main(x), main(y)),
			cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Thread, b.Thread))
	})
	return list
}

// weightTypes are keyed by the unit of an event.
var weightTypes = map[string]string{"nanoseconds": "tracing-ms", "bytes": "bytes"}

func (w *writer) thread(t *profile.TrackSamples) {
	p := w.p
	th, e := p.Threads[t.Thread], p.Events[t.Event]
	name := cmp.Or(th.Name, "[unknown]")
	if t.Event > 0 {
		name += " (" + e.Name + ")"
	}
	w.raw(`{"processType":"default","processStartupTime":0,"processShutdownTime":null,"registerTime":0,"unregisterTime":null,"pausedRanges":[],"name":`)
	w.text(name)
	w.raw(fmt.Sprintf(`,"isMainThread":%v,"pid":"%d","tid":%d,"processName":`, th.TID == th.PID && t.Event == 0, th.PID, th.TID))
	w.text(w.process(th.PID))
	w.raw(`,"markers":{"data":[],"name":[],"startTime":[],"endTime":[],"phase":[],"category":[],"length":0},` + "\n" + `"samples":{`)
	column := func(name string, each func(s *profile.Sample)) {
		w.raw(`"` + name + `":[`)
		t.Each(func(i int, s *profile.Sample) {
			if i > 0 {
				w.raw(",")
			}
			each(s)
		})
		w.raw("],")
	}
	last := uint64(0)
	column("stack", func(s *profile.Sample) {
		last = s.Time
		if n := w.stack(s.Node, s.End); n != 0 {
			w.int(int(n - 1))
		} else {
			w.raw("null")
		}
	})
	timed := last > 0
	at := uint64(0)
	column("time", func(s *profile.Sample) {
		if timed {
			w.milliseconds(s.Time)
			return
		}
		// The file has no times: the samples follow each other, each as long as its weight.
		w.milliseconds(at)
		if e.Unit == "nanoseconds" {
			at += s.Weight
		} else {
			at += 1e6
		}
	})
	column("weight", func(s *profile.Sample) {
		if e.Unit == "nanoseconds" {
			w.milliseconds(s.Weight)
		} else {
			w.raw(strconv.FormatUint(s.Weight, 10))
		}
	})
	w.raw(`"weightType":"` + cmp.Or(weightTypes[e.Unit], "samples") + `",`)
	w.end(t.Samples)
	w.raw("}")
}

func (w *writer) process(pid int) string {
	for _, p := range w.p.Processes {
		if p.PID == pid {
			return p.Command
		}
	}
	return ""
}

// stack returns the node of the table of stacks, 0 for an empty one.
func (w *writer) stack(node uint32, end walk.End) uint32 {
	key := uint64(node)<<8 | uint64(end)
	n, ok := w.known[key]
	if ok {
		return n
	}
	w.path = w.path[:0]
	for at := w.p.BeforeSkid(node); at != profile.RootNode; at = w.p.Nodes[at].Parent {
		w.path = append(w.path, w.p.Nodes[at].Frame)
	}
	if end != walk.EndComplete {
		w.path = append(w.path, uint32(len(w.p.Frames))+uint32(end))
	}
	for _, f := range slices.Backward(w.path) {
		n = w.stacks.Child(n, f)
	}
	w.known[key] = n
	return n
}
