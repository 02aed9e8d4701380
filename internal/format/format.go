// Package format writes profiles to the formats that people's tools read, and reads back those that
// keep enough. Each format is a package below it.
package format

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/candid-profiler/candid/internal/format/collapsed"
	"github.com/candid-profiler/candid/internal/format/firefox"
	"github.com/candid-profiler/candid/internal/format/html"
	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/format/otlp"
	"github.com/candid-profiler/candid/internal/format/pprof"
	"github.com/candid-profiler/candid/internal/format/speedscope"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
)

// Options apply to those formats that have a choice.
type Options struct {
	// Threads splits by thread: roots in collapsed files and flame graphs, the
	// views of a text report.
	Threads bool
	// Kinds marks each frame's kind in collapsed files.
	Kinds bool
	// Weights counts in the event's unit in collapsed files, not in samples. If samples stand for
	// different amounts this is always so.
	Weights bool
}

// entry is a row of the table of formats.
type entry struct {
	name       string
	extensions []string
	about      string
	reads      bool
	keep       profile.Keep                                           // how write needs samples to be kept
	write      func(w io.Writer, p *profile.Profile, o Options) error // nil: the format is only read
}

// entries are all formats, in the order in which help lists them.
var entries = []entry{
	{"jfr", []string{".jfr"}, "the JDK's jfr, JMC, IntelliJ, async-profiler; keeps everything", true, profile.KeepPacked,
		func(w io.Writer, p *profile.Profile, _ Options) error { return jfr.Write(w, p) }},
	{"jfr.gz", []string{".jfr.gz"}, "the same in a half to a quarter of the bytes; gunzip undoes it", true, profile.KeepPacked,
		func(w io.Writer, p *profile.Profile, _ Options) error { return jfr.WritePacked(w, p) }},
	{"jfr.zst", []string{".jfr.zst"}, "the same in a third to an eighth of the bytes; zstd -d undoes it", true, profile.KeepPacked,
		func(w io.Writer, p *profile.Profile, _ Options) error { return jfr.WriteZstd(w, p) }},
	{"pprof", []string{".pb.gz", ".pprof", ".pb"}, "go tool pprof, Pyroscope, Parca; all but single times", true, profile.KeepSums,
		func(w io.Writer, p *profile.Profile, _ Options) error { return pprof.Write(w, p) }},
	{"html", []string{".html", ".htm"}, "a flame graph in one file that any browser opens", false, profile.KeepSums,
		func(w io.Writer, p *profile.Profile, o Options) error {
			split := html.SplitNone
			if o.Threads {
				split = html.SplitThread
			}
			return html.Write(w, p, html.Options{Split: split})
		}},
	{"collapsed", []string{".collapsed", ".folded"}, "a line for each stack, for scripts, flamegraph.pl and speedscope", true, profile.KeepSums,
		func(w io.Writer, p *profile.Profile, o Options) error {
			return collapsed.Write(w, p, collapsed.Options{Threads: o.Threads, Kinds: o.Kinds, Weights: o.Weights || weighs(p)})
		}},
	{"speedscope", []string{".speedscope.json"}, "speedscope.app: each thread in the order of time", true, profile.KeepTracks,
		func(w io.Writer, p *profile.Profile, _ Options) error { return speedscope.Write(w, p) }},
	{"firefox", []string{".firefox.json"}, "the Firefox Profiler, profiler.firefox.com: threads over time", false, profile.KeepTracks,
		func(w io.Writer, p *profile.Profile, _ Options) error { return firefox.Write(w, p) }},
	{"otlp", []string{".otlp"}, "OpenTelemetry's collectors (ProfilesData, v1development)", false, profile.KeepSums,
		func(w io.Writer, p *profile.Profile, _ Options) error { return otlp.Write(w, p) }},
	{name: "perf.data", extensions: []string{".data"}, about: "what perf record writes; names come from files of this machine", reads: true},
	{name: "perf script", about: "what perf script prints", reads: true},
	{"text", []string{".txt"}, "the report, for people", false, profile.KeepSums,
		func(w io.Writer, p *profile.Profile, o Options) error {
			return report.Text(w, p, report.Options{ByThread: o.Threads})
		}},
	{"json", []string{".json"}, "the report, for scripts", false, profile.KeepSums,
		func(w io.Writer, p *profile.Profile, _ Options) error {
			return report.JSON(w, p, report.Options{View: report.ViewTree})
		}},
}

// Keeps returns how samples must be kept that are only written in the format of that name.
func Keeps(name string) profile.Keep {
	e, err := byName(name)
	if err != nil {
		return profile.KeepSamples
	}
	return e.keep
}

// OneEvent reports whether files of that format hold only one event.
func OneEvent(name string) bool { return name == "collapsed" || name == "text" || name == "json" }

// weighs reports whether samples of the profile's first event stand for different amounts, so that
// their number says little.
func weighs(p *profile.Profile) bool {
	if len(p.Events) == 0 {
		return false
	}
	e := p.Events[0]
	switch e.Unit {
	case "nanoseconds":
		return e.Kind == profile.EventWall || e.Kind == profile.EventOffCPU || e.Kind == profile.EventTime
	case "count":
		return e.Kind != profile.EventSamples
	}
	return false
}

// ErrUnknown is wrapped by the errors for an unknown format or extension.
var ErrUnknown = errors.New("unknown format")

// Names returns the names that --format accepts, for a help text.
func Names() string {
	var names []string
	for _, e := range entries {
		if e.write != nil {
			names = append(names, e.name)
		}
	}
	return strings.Join(names, ", ")
}

// Help returns the formats that can be written, a line for each.
func Help() string { return help(func(e entry) bool { return e.write != nil }) }

// HelpRead returns the formats that can be read, a line for each.
func HelpRead() string { return help(func(e entry) bool { return e.reads }) }

func help(which func(entry) bool) string {
	var b strings.Builder
	for _, e := range entries {
		if which(e) {
			fmt.Fprintf(&b, "  %-11s %-20s %s\n", e.name, strings.Join(e.extensions, " "), e.about)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ForPath returns the name of the format to write: the named one if name is not "", otherwise by
// the extension of path.
func ForPath(path, name string) (string, error) {
	if name != "" {
		e, err := byName(name)
		return e.name, err
	}
	if path == "-" {
		return "", fmt.Errorf("%w: standard output has no extension; say which with --format: %s", ErrUnknown, Names())
	}
	best, longest := "", 0
	base := strings.ToLower(filepath.Base(path))
	var known []string
	for _, e := range entries {
		if e.write == nil {
			continue
		}
		for _, ext := range e.extensions {
			known = append(known, ext)
			if strings.HasSuffix(base, ext) && len(ext) > longest {
				best, longest = e.name, len(ext)
			}
		}
	}
	if best == "" {
		return "", fmt.Errorf("%w: no format has the extension of %s; known are %s, or say which with --format: %s",
			ErrUnknown, path, strings.Join(known, " "), Names())
	}
	return best, nil
}

// byName also accepts an extension as a name: --format pb.gz.
func byName(name string) (entry, error) {
	for _, e := range entries {
		if e.write == nil {
			continue
		}
		if e.name == name {
			return e, nil
		}
		for _, ext := range e.extensions {
			if strings.TrimPrefix(ext, ".") == strings.TrimPrefix(strings.ToLower(name), ".") {
				return e, nil
			}
		}
	}
	return entry{}, fmt.Errorf("%w %q: there are %s", ErrUnknown, name, Names())
}

// Write writes p in the format of that name. p must have passed Check or come from a Builder. The
// output depends only on p and o.
func Write(w io.Writer, name string, p *profile.Profile, o Options) error {
	e, err := byName(name)
	if err != nil {
		return err
	}
	if OneEvent(name) {
		if first := p.FirstEvent(); first > 0 {
			p = profile.Only(p, first)
		}
	}
	err = e.write(w, p, o)
	if lost := p.Err(); lost != nil {
		return fmt.Errorf("write %s: read again what was too much for memory: %w", e.name, lost)
	}
	return err
}

// readable returns the names of the formats that can be read, with their extensions.
func readable() string {
	var names []string
	for _, e := range entries {
		if e.reads {
			name := e.name
			if len(e.extensions) > 0 {
				name += " (" + strings.Join(e.extensions, " ") + ")"
			}
			names = append(names, name)
		}
	}
	return list(names)
}

// list joins names in a sentence.
func list(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
