package runtimes

import (
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/golang"
	"github.com/candid-profiler/candid/internal/nativeimage"
	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/pe"
	"github.com/candid-profiler/candid/internal/target"
)

// Detector recognises runtimes and remembers the files that it has examined. It may not be used
// from several goroutines at once.
type Detector struct {
	files map[fileid.Named]*fileFacts
}

// NewDetector returns a Detector that has seen nothing.
func NewDetector() *Detector { return &Detector{files: make(map[fileid.Named]*fileFacts)} }

const (
	maxFiles   = 20000 // remembered; then all are forgotten
	maxModules = 2000  // looked at in one process
)

// fileFacts is what one file says about the runtime in it.
type fileFacts struct {
	kind    Kind
	version string // as in the file
	live    *liveVersion
	addr    uint64 // address of live's symbol in the file
	progs   []objfile.Segment
}

// look opens a process for a moment to recognise its runtime.
func (d *Detector) look(pid int) (Detected, target.Reason) {
	p, err := target.Open(pid)
	if err != nil {
		var a *target.AccessError
		if errors.As(err, &a) {
			return Detected{}, a.Reason
		}
		return Detected{}, target.ReasonNoProcess
	}
	defer p.Close()
	r, err := d.Of(p)
	if err != nil {
		switch {
		case errors.Is(err, target.ErrZombie):
			return r, target.ReasonZombie
		case errors.Is(err, target.ErrNoProcess):
			return r, target.ReasonNoProcess
		case errors.Is(err, target.ErrPermission):
			return r, target.ReasonPolicy
		}
	}
	return r, target.ReasonNone
}

// Of recognises the runtime of a process. A process without a known one is Native. The errors are
// those of target.Process.Modules.
func (d *Detector) Of(p *target.Process) (Detected, error) {
	mods, err := p.Modules()
	if err != nil {
		return Detected{}, err
	}
	best := Detected{Kind: Native, Path: strings.TrimSuffix(p.Exe(), " (deleted)")}
	var at target.Module
	var facts *fileFacts
	for i, m := range mods {
		if i >= maxModules {
			break
		}
		if m.VDSO() {
			continue
		}
		if f := d.facts(p, m); f.kind != Unknown && f.kind < best.Kind {
			best.Kind, best.Path, best.Version = f.kind, m.Path, f.version
			at, facts = m, f
		}
	}
	if best.Kind == Wine {
		return d.inWine(p, best), nil
	}
	if facts == nil {
		return best, nil
	}
	if best.Kind == Hotspot {
		best.Version = hotspotVersion(p, at, facts)
	}
	if facts.live != nil {
		if bias, ok := at.Bias(facts.progs); ok {
			if v := facts.live.read(p.Memory(), bias+facts.addr); v != "" {
				best.Version = v
			}
		}
	}
	return best, nil
}

// facts examines a module's file, unless that was done before.
func (d *Detector) facts(p *target.Process, m target.Module) *fileFacts {
	id := m.File()
	if f, ok := d.files[id]; ok {
		return f
	}
	if len(d.files) >= maxFiles {
		clear(d.files)
	}
	f := &fileFacts{}
	d.files[id] = f
	x, _ := m.Executable()
	file, err := p.OpenFile(x)
	if err != nil {
		// Without the file, its name must suffice.
		f.kind = kindByName(m.Path, false)
		return f
	}
	defer file.Close()
	f.learn(file, m.Path)
	return f
}

// learn examines the file with this name.
func (f *fileFacts) learn(r io.ReaderAt, name string) {
	file, err := objfile.Open(r)
	if err != nil {
		f.learnPE(r, name)
		return
	}
	table := file.Exports()
	for i := range signs {
		s := &signs[i]
		if f.kind != Unknown && s.kind > f.kind {
			continue
		}
		addr, ok := uint64(0), false
		if s.section != "" {
			ok = file.Section(s.section) != nil
		} else {
			addr, ok = table.Lookup(s.symbol)
		}
		if !ok {
			continue
		}
		if s.kind < f.kind || f.kind == Unknown {
			*f = fileFacts{kind: s.kind}
		}
		if s.live != nil && f.live == nil {
			f.live, f.addr = s.live, addr
			f.progs = file.Segments
		}
	}
	if f.kind == Unknown {
		f.kind = kindByName(name, true)
	}
	switch f.kind {
	case Go:
		f.version = goVersion(r)
	case CoreCLR:
		f.version = CoreCLRVersion(r, name)
	case NativeImage:
		f.version = nativeimage.Version(r)
	case Python:
		f.version = versionInPath(name)
	}
}

// inWine looks for a runtime among the images of Windows that a process in Wine maps. Their code need
// not be mapped from the file.
func (d *Detector) inWine(p *target.Process, best Detected) Detected {
	maps, err := p.Mappings()
	if err != nil {
		return best
	}
	looked := 0
	for _, m := range maps {
		name := strings.ToLower(m.Path)
		if !m.FileBacked() || m.Offset != 0 || !strings.HasSuffix(name, ".dll") && !strings.HasSuffix(name, ".exe") || looked == maxModules {
			continue
		}
		looked++
		id := m.File()
		f, ok := d.files[id]
		if !ok {
			f = &fileFacts{}
			if file, err := p.OpenFile(m); err == nil {
				f.learnPE(file, m.Path)
				file.Close()
			}
			d.files[id] = f
		}
		if f.kind != Unknown && f.kind < best.Kind {
			best = Detected{Kind: f.kind, Path: m.Path, Version: f.version}
			if f.kind == Hotspot {
				best.Version = hotspotVersion(p, target.Module{Path: m.Path, Deleted: m.Deleted, Mappings: []target.Mapping{m}}, f)
			}
		}
	}
	return best
}

// learnPE examines an image of Windows with this name.
func (f *fileFacts) learnPE(r io.ReaderAt, name string) {
	image, err := pe.Open(r)
	if err != nil {
		return
	}
	exports, err := image.Exports()
	if err != nil && !errors.Is(err, pe.ErrAbsent) {
		return
	}
	if golang.MadeByGo(image) {
		f.kind, f.version = Go, goVersion(r)
	}
	for _, e := range exports {
		for i := range signs {
			if s := &signs[i]; s.symbol == e.Name && s.live == nil && (f.kind == Unknown || s.kind < f.kind) {
				f.kind = s.kind
			}
		}
	}
	if f.kind == CoreCLR {
		f.version = WindowsCoreCLRVersion(image, exports, name)
	}
}

// sign is something in a file that identifies a runtime.
type sign struct {
	kind    Kind
	symbol  string // exported
	section string // or a section
	live    *liveVersion
}

// signs are looked for in every executable file of a process.
var signs = []sign{
	// Read by the JDK's own serviceability agent; in every JDK since 6.
	{kind: Hotspot, symbol: "gHotSpotVMStructs"},
	// Read by .NET's debuggers: the table of libcoreclr, and what a single-file
	// program exports in its place (docs/design/features/single-file in
	// dotnet/runtime).
	{kind: CoreCLR, symbol: "g_dacTable"},
	{kind: CoreCLR, symbol: "DotNetRuntimeInfo"},
	// Hosts of .NET Core call it, in every version (src/coreclr/hosts/inc/coreclrhost.h).
	{kind: CoreCLR, symbol: "coreclr_execute_assembly"},
	{kind: NativeAOT, symbol: "DotNetRuntimeDebugHeader"},
	{kind: NativeImage, section: ".svm_heap"},
	{kind: NativeImage, symbol: "graal_create_isolate"},
	{kind: Node, symbol: "_ZN4node11per_process8metadataE", live: &nodeVersion},
	{kind: Node, symbol: "napi_create_function"},
	{kind: Python, symbol: "Py_Version", live: &pythonVersion}, // since 3.11
	{kind: Python, symbol: "Py_GetVersion"},
	{kind: Ruby, symbol: "ruby_version", live: &rubyVersion},
	{kind: Go, section: ".go.buildinfo"},
	{kind: Go, section: ".gopclntab"},
	{kind: Wine, symbol: "__wine_main"}, // of its ntdll.so
}

// kindByName recognises files that export no known symbol, or cannot be read. A file that was read
// and exports no table of a virtual machine is not a virtual machine, whatever its name.
func kindByName(name string, wasRead bool) Kind {
	base := strings.TrimSuffix(target.BaseName(name), ".exe")
	switch {
	case base == "libjvm.so" && !wasRead:
		return Hotspot
	case base == "libcoreclr.so" && !wasRead:
		return CoreCLR
	case strings.HasPrefix(base, "libj9vm"):
		return OpenJ9
	case base == "node" || base == "nodejs":
		return Node
	case pythonName.MatchString(base):
		return Python
	}
	return Unknown
}

var pythonName = regexp.MustCompile(`^python([23](\.[0-9]+)?)?$`)
