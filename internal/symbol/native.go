package symbol

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/dwarfline"
	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/javaname"
	"github.com/candid-profiler/candid/internal/safeopen"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

const (
	maxCached = 1 << 12 // addresses per file whose names are cached; callers cache them too
	maxFiles  = 4096    // files held open at once
)

// Place is the position of a native frame's code in a file.
type Place struct {
	File fileid.ID // while it is mapped
	// Content identifies what is the same in other processes, and is named once for all. The zero
	// value means that it is not shared.
	Content fileid.Content
	Name    string // short name of the module: libjvm.so, [vdso]
	Path    string // as the target sees it, "" if unknown
	Addr    uint64 // the frame's PC as an address of the file
}

// Locator finds the file that the code of a frame comes from.
type Locator interface {
	// Locate finds the file of f. It must not allocate when it succeeds.
	Locate(f walk.Frame) (Place, bool)
	// Open opens the file; the caller closes it.
	Open(p Place) (target.File, error)
}

// Native names frames of machine code that came from files. Each file is opened when the first
// frame in it is named, and each address is named once. It is not safe for concurrent use.
type Native struct {
	loc    Locator
	open   func(path string) (*os.File, error)
	files  map[fileid.ID]*nativeFile
	shared *Shared
	perf   *perfMap
	pseudo []string          // names of mapped images that are not files
	places []dwarfline.Place // reused
	// NoLines says to name functions only, without source lines and inlined functions.
	NoLines bool
	// NoDebugFiles says to use nothing but the files that are mapped.
	NoDebugFiles bool
	// Wanted, if set, is called before the source lines of a file are read, and may block. It is
	// called from another goroutine. If it returns false, only functions are named, until the file
	// is requested again by a caller who wants the lines.
	Wanted func() bool
	// Room, if set, is called before source lines are read that may take this many bytes of memory.
	// If it returns false, the lines count as not wanted. It is called like Wanted.
	Room func(bytes uint64) bool
	// Budget bounds what all files of a recording take together; nil: nothing does.
	Budget *Budget
	// Fleeting, if set, reports whether the process may end soon. A file that others have read
	// without source lines is then good enough.
	Fleeting func() bool
	// Opened, if set, is called by Resolve when the first frame in a file is named.
	Opened func(p Place, buildID string)
}

var _ Preparer = (*Native)(nil)

// nativeFile is a file of code, with the names of the addresses that were looked up.
type nativeFile struct {
	coming chan opened // delivers the file while it is being read, else nil
	early  chan opened // delivers it without source lines before they are read
	opened
	name     string
	shared   *Shared // nil if it is not shared
	used     uint64  // when it was last used, counted by shared
	released bool    // its content was released: it has to be read again
	told     bool    // Opened was called
	frames   map[uint64][]Frame
	lookedUp time.Time // when an address was last named that is not in frames
}

// here reports whether the file has been read.
func (nf *nativeFile) here() bool {
	if nf.coming != nil {
		select {
		case nf.opened = <-nf.coming:
			nf.coming = nil
		default:
			return false
		}
	}
	return true
}

// wait waits until the file has been read, or the budget is given up: then the file is used without
// source lines, or not at all.
func (nf *nativeFile) wait(b *Budget) {
	if nf.here() {
		return
	}
	select {
	case nf.opened = <-nf.coming:
	case <-b.ended():
		b.awaited.Add(1)
		select {
		case nf.opened = <-nf.early:
		default:
			nf.opened = opened{err: errors.New("its symbols were still being read when the recording had ended")}
		}
	}
	nf.coming = nil
}

// NewNative returns a resolver. open opens a regular file in the target's root; nil if that is the
// root directory of candid itself.
func NewNative(loc Locator, open func(path string) (*os.File, error)) *Native {
	if open == nil {
		open = func(path string) (*os.File, error) { return safeopen.InRoot("/", path) }
	}
	return &Native{loc: loc, open: open, files: map[fileid.ID]*nativeFile{}}
}

// Share lets the resolver use what others have read of files. shared is used from the goroutine of
// all resolvers that share it.
func (n *Native) Share(shared *Shared) { n.shared = shared }

// UsePerfMap makes code without a file be named by the map that the runtime itself writes to
// /tmp/perf-PID.map, which open opens; see target.Process.OpenPerfMap.
func (n *Native) UsePerfMap(open func() (*os.File, error)) {
	n.perf = &perfMap{open: open, budget: func() *Budget { return n.Budget }}
}

// PerfMapProblem returns why the runtime's map is not used, nil if it is or there is none.
func (n *Native) PerfMapProblem() error {
	if n.perf == nil {
		return nil
	}
	return n.perf.problem
}

// Resolve names f: inlined functions first, then the function that was compiled.
func (n *Native) Resolve(f walk.Frame, out []Frame) []Frame {
	p, ok := n.loc.Locate(f)
	if !ok {
		return append(out, n.noFile(f))
	}
	if p.File == (fileid.ID{}) {
		if p.Path == "" && n.perf != nil { // memory without a file
			if r := n.noFile(f); !r.NoName {
				return append(out, r)
			}
		}
		p.File = n.unnumbered(p.Name)
	}
	nf, addr := n.file(p), lookupAddr(p.Addr, f.Flags)
	nf.wait(n.Budget)
	if !nf.told && nf.f != nil && n.Opened != nil {
		nf.told = true
		n.Opened(p, nf.f.BuildID())
	}
	if n.shared != nil {
		n.shared.asked++
		nf.used = n.shared.asked
	}
	known, ok := nf.frames[addr]
	if !ok {
		if n.wakes(nf, addr) {
			nf.wait(n.Budget)
		}
		if nf.frames == nil || len(nf.frames) >= maxCached {
			nf.frames = map[uint64][]Frame{}
		}
		known = n.name(nf, addr)
		if nf.lookedUp = time.Now(); nf.f == nil || !nf.f.dozing {
			nf.frames[addr] = known
		}
	}
	at := len(out)
	out = append(out, known...)
	for i := at; i < len(out); i++ {
		r := &out[i]
		r.Flags, r.Addr = f.Flags, p.Addr
		if r.Kind != walk.KindInlined {
			r.Kind = f.Kind
		}
	}
	return out
}

// Prepare implements Preparer. Code without a file is read at once, or named in another way.
func (n *Native) Prepare(f walk.Frame) bool {
	p, ok := n.loc.Locate(f)
	if !ok || p.File == (fileid.ID{}) {
		return true
	}
	nf := n.file(p)
	return nf.here() && !n.wakes(nf, lookupAddr(p.Addr, f.Flags))
}

// wakes begins to read the source lines of a file again that dozes, if the name of addr needs them, and
// reports whether it did. A process that may end soon does without them.
func (n *Native) wakes(nf *nativeFile, addr uint64) bool {
	if nf.f == nil || !nf.f.dozing || n.Fleeting != nil && n.Fleeting() {
		return false
	}
	if _, known := nf.frames[addr]; known {
		return false
	}
	nf.coming, nf.early = make(chan opened, 1), make(chan opened, 1)
	nf.early <- opened{f: nf.f.withoutLines(), brief: true}
	go readAgain(nf.opened, n.Wanted, n.Room, nf.coming)
	return true
}

// unnumbered returns an id for what the kernel maps without a file, such as the vdso: no device has
// the number 0 with an inode that is the name's index.
func (n *Native) unnumbered(name string) fileid.ID {
	for i, s := range n.pseudo {
		if s == name {
			return fileid.ID{Inode: uint64(i) + 1}
		}
	}
	if len(n.pseudo) >= 64 {
		return fileid.ID{Inode: 64}
	}
	n.pseudo = append(n.pseudo, name)
	return fileid.ID{Inode: uint64(len(n.pseudo))}
}

// lookupAddr returns the address of the frame's own instruction. A return address may already
// belong to the next line or, after a call that never returns, to the next function.
func lookupAddr(addr uint64, flags walk.FrameFlags) uint64 {
	if flags&walk.ReturnAddress != 0 && addr > 0 {
		return addr - 1
	}
	return addr
}

// noFile names code without a file.
func (n *Native) noFile(f walk.Frame) Frame {
	r := Frame{Function: "[unknown]", BCI: -1, Kind: f.Kind, Flags: f.Flags, Addr: f.PC, NoName: true}
	if n.perf == nil {
		return r
	}
	if e, ok := n.perf.find(lookupAddr(f.PC, f.Flags), time.Now()); ok {
		r.Function, r.NoName, r.Module = Demangle(e.name), false, "[jit]"
		if f, raw, signature, ok := javaname.PerfMap(e.name); ok {
			r.Function, r.Raw, r.Signature = Printable(f), Printable(raw), Printable(signature)
		} else if r.Function != e.name {
			r.Raw = Printable(e.name)
		}
		if r.Kind == walk.KindUnknown || r.Kind == walk.KindNative {
			r.Kind = walk.KindCompiled
		}
	}
	return r
}

// name makes the frames of one address.
func (n *Native) name(nf *nativeFile, addr uint64) []Frame {
	r := Frame{Module: nf.name, BCI: -1}
	if nf.f == nil {
		r.Function, r.NoName = offsetName(nf.name, addr), true
		return []Frame{r}
	}
	s, ok := nf.f.Symbol(addr)
	if !ok {
		s = Symbol{Start: addr, NoName: true}
	}
	r.Function, r.Raw, r.NoName = s.Name, s.Raw, s.NoName
	if s.NoName {
		r.Function = offsetName(nf.name, s.Start)
	}
	n.places = nf.f.Lines(addr, n.places[:0])
	if len(n.places) == 0 {
		return []Frame{r}
	}
	out := make([]Frame, 0, len(n.places))
	for i, pl := range n.places {
		fr := r
		fr.File, fr.Line, fr.Start = Printable(pl.File), pl.Line, pl.Start
		inlined := i < len(n.places)-1
		if inlined && pl.Function == "" {
			continue // its description lies in a file made by dwz, which is not read
		}
		if inlined {
			fr.Kind = walk.KindInlined
		}
		if (inlined || r.NoName) && pl.Function != "" {
			fr.Function, fr.Raw, fr.NoName = Demangle(pl.Function), "", false
			if fr.Function != pl.Function {
				fr.Raw = Printable(pl.Function)
			}
		}
		out = append(out, fr)
	}
	return out
}

func offsetName(module string, addr uint64) string {
	return fmt.Sprintf("%s+%#x", module, addr)
}

// file opens the file of p once, and starts to read it.
func (n *Native) file(p Place) *nativeFile {
	before := n.files[p.File]
	if before != nil && !before.released {
		return before
	}
	nf := &nativeFile{name: Printable(p.Name)}
	if before == nil && len(n.files) >= maxFiles {
		nf.err = fmt.Errorf("%s: %d files are open already", p.Name, len(n.files))
		return nf
	}
	if known := n.shared.find(p); known != nil && (n.Fleeting == nil || n.Fleeting() || !known.here() || !known.brief) {
		n.files[p.File] = known
		return known
	}
	n.files[p.File] = nf
	opt := Options{Path: p.Path, NoLines: n.NoLines || isCLibrary(p.Name), Budget: n.Budget}
	if !n.NoDebugFiles {
		opt.OpenDebug = n.openDebug
	}
	// The process may end before the file has been read, so it is opened now.
	f, err := n.loc.Open(p)
	if err != nil {
		if nf.err = err; strings.HasPrefix(p.Name, "[vdso") {
			nf.f, nf.err = ownVDSO()
		}
		return nf
	}
	n.shared.keep(p, nf)
	nf.coming, nf.early = make(chan opened, 1), make(chan opened, 1)
	go read(f, opt, strings.HasPrefix(p.Name, "[vdso"), n.Wanted, n.Room, nf.early, nf.coming)
	return nf
}

// withoutLines returns a copy of a file whose source lines were not read, which may be used while
// they are.
func (f *File) withoutLines() *File {
	c := *f
	c.opt.NoLines, c.haveLines, c.lines, c.dozing, c.close = true, true, nil, false, nil
	return &c
}

// Notes returns which files could not be used, completely or in part, and why.
func (n *Native) Notes() []error {
	var out []error
	for _, nf := range n.files {
		if nf.wait(n.Budget); nf.released {
			continue
		}
		if nf.err != nil {
			out = append(out, fmt.Errorf("%s: %w", nf.name, nf.err))
			continue
		}
		for _, e := range nf.f.Notes() {
			out = append(out, fmt.Errorf("%s: %w", nf.name, e))
		}
	}
	if n.perf != nil && n.perf.problem != nil {
		out = append(out, n.perf.problem)
	}
	return out
}

// Close closes every file that is not shared. The resolver must not be used afterwards.
func (n *Native) Close() error {
	var first error
	for _, nf := range n.files {
		if nf.shared != nil {
			continue
		}
		if nf.wait(n.Budget); nf.f == nil {
			continue
		}
		if err := nf.f.Close(); err != nil && first == nil {
			first = err
		}
	}
	clear(n.files)
	return first
}
