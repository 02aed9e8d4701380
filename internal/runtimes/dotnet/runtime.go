// Package dotnet makes CoreCLR, .NET's runtime, one of candid's runtimes. Package coreclr reads it;
// this package finds it and adapts it to the interfaces of package runtimes.
package dotnet

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/candid-profiler/candid/internal/coreclr"
	"github.com/candid-profiler/candid/internal/emulate"
	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Runtime is CoreCLR.
var Runtime = runtimes.Runtime{
	Kind:      runtimes.CoreCLR,
	Functions: ".NET methods", Threads: ".NET threads", Programs: ".NET processes",
	Means:    ".NET methods are named, of all tiers and compiled ahead of time, with lines where there are portable PDBs",
	Launched: true,
	// src/coreclr/jit/jitconfigvalues.h: it keeps what is known of inlined methods, and reports it.
	InlineEnv: []string{"DOTNET_RichDebugInfo=1"},
	Finder: func() runtimes.Finder {
		return &finder{files: map[fileid.ID]*facts{}, held: map[fileid.ID]target.File{}}
	},
	// Methods of System.Private.CoreLib in which a thread waits. Which of them is innermost depends on
	// the version, and on what was inlined. A worker without work is parked.
	Waits: map[string]profile.State{
		"System.Threading.Monitor.ObjWait":                            profile.StateWaiting,
		"System.Threading.Monitor.Wait":                               profile.StateWaiting,
		"System.Threading.WaitHandle.WaitOneCore":                     profile.StateWaiting,
		"System.Threading.WaitHandle.WaitOneNoCheck":                  profile.StateWaiting,
		"System.Threading.WaitHandle.WaitMultiple":                    profile.StateWaiting,
		"System.Threading.WaitHandle.WaitMultipleIgnoringSyncContext": profile.StateWaiting,
		"System.Threading.Thread.Join":                                profile.StateWaiting,
		"System.Threading.LowLevelLifoSemaphore.WaitNative":           profile.StateParked,
		"System.Threading.LowLevelLifoSemaphore.WaitCore":             profile.StateParked,
		"System.Threading.LowLevelLifoSemaphore.WaitForSignal":        profile.StateParked,
	},
	// Up to 9 entering a monitor is native code, which has no names.
	Locks: []string{"System.Threading.Monitor.Enter", "System.Threading.Monitor.TryEnter", "System.Threading.Monitor.ReliableEnter", "System.Threading.Lock.",
		"System.Threading.ReaderWriterLockSlim.", "System.Threading.ReaderWriterLock."},
}

// finder looks for CoreCLR in processes, and remembers which files hold it.
type finder struct {
	files map[fileid.ID]*facts
	held  map[fileid.ID]target.File // assemblies of processes, also of those that have ended
}

// facts are what a file says about the CoreCLR in it; nil: it has none.
type facts struct {
	dacTable, descriptor uint64 // addresses in the file
	chain, restore       uint64 // the same of what coreclr.FindChain and FindRestore find
	progs                []objfile.Segment
	version              string
	windows              *windowsFacts // of an image of Windows
}

// maxFiles bounds the files that are remembered.
const maxFiles = 1 << 12

// maxHeld bounds the files of assemblies that are kept open.
const maxHeld = 256

var _ runtimes.Finder = (*finder)(nil)

// library is the name of the runtime's file where it is not a part of the program's own.
const library = "libcoreclr.so"

// Without implements runtimes.Finder. The runtime is in a library of its own, or, in single-file
// programs, in the program itself.
func (f *finder) Without(m target.Mapping) bool {
	if !m.FileBacked() {
		return true
	}
	base := target.BaseName(m.Path)
	if base == library || strings.EqualFold(base, windowsLibrary) {
		return false
	}
	known, seen := f.files[m.ID()]
	return seen && known == nil || strings.Contains(base, ".so") || strings.HasSuffix(strings.ToLower(base), ".dll")
}

// Open implements runtimes.Finder.
func (f *finder) Open(t *target.Process, code *native.Stepper) (runtimes.Instance, error) {
	modules, err := t.Modules()
	if err != nil {
		return nil, err
	}
	if i, err := f.openWindows(t, code); err != nil || i != nil {
		return i, err
	}
	exe := strings.TrimSuffix(t.Exe(), " (deleted)")
	unplaced := ""
	for _, m := range modules {
		if path.Base(m.Path) != library && m.Path != exe || m.VDSO() {
			continue
		}
		k := f.facts(t, m)
		if k == nil {
			continue
		}
		if k.dacTable == 0 {
			return nil, fmt.Errorf("open CoreCLR of process %d (%s): CoreCLR %s: %w", t.PID, m.Path, k.version, coreclr.ErrVersion)
		}
		bias, ok := m.Bias(k.progs)
		if !ok {
			unplaced = m.Path // a single-file program maps its assemblies from the same file
			continue
		}
		at := coreclr.Symbols{DacTable: bias + k.dacTable}
		if k.descriptor != 0 {
			at.Descriptor = bias + k.descriptor
		}
		if k.chain != 0 {
			at.Chain = bias + k.chain
		}
		if k.restore != 0 {
			at.Restore = bias + k.restore
		}
		return f.open(t, code, m.Path, exe, k.version, at, coreclr.System{})
	}
	if unplaced != "" {
		return nil, fmt.Errorf("open CoreCLR of process %d: no mapping of %s matches its segments", t.PID, unplaced)
	}
	return nil, fmt.Errorf("process %d: %w", t.PID, runtimes.ErrAbsent)
}

// open opens the runtime in a file of a process whose program is exe.
func (f *finder) open(t *target.Process, code *native.Stepper, file, exe, version string, at coreclr.Symbols, on coreclr.System) (runtimes.Instance, error) {
	var known coreclr.Code
	if code != nil {
		known = code
	}
	on.Arch = t.Arch()
	vm, err := coreclr.Open(t.Memory(), version, at, on, known, f.filesOf(t, exe))
	if errors.Is(err, coreclr.ErrNotReady) {
		err = runtimes.Mark(err, runtimes.ErrNotReady)
	}
	if err != nil {
		return nil, fmt.Errorf("open CoreCLR of process %d (%s): %w", t.PID, file, err)
	}
	i := &instance{VM: vm, process: t, native: code}
	if on.Windows {
		i.observer.calls, i.observer.shift = emulate.Windows, clockShift
	}
	return i, nil
}

// filesOf returns the files of a process whose program is exe.
func (f *finder) filesOf(t *target.Process, exe string) coreclr.Files {
	return coreclr.Files{
		Hold: func(m target.Mapping) (io.ReaderAt, error) {
			if file, ok := f.held[m.ID()]; ok {
				return file, nil
			}
			file, err := t.OpenFile(m)
			if err != nil {
				return nil, err
			}
			// A file that is forgotten here is closed when no process that was seen needs it any more.
			if len(f.held) >= maxHeld {
				clear(f.held)
			}
			f.held[m.ID()] = file
			return file, nil
		},
		Open: func(path string) (coreclr.File, error) { return t.OpenPath(path) },
		At: func(addr uint64) string {
			maps, err := t.Mappings()
			if err != nil {
				return ""
			}
			for _, m := range maps {
				if m.Contains(addr) && m.FileBacked() {
					return m.Path
				}
			}
			return ""
		},
		Dir: path.Dir(filepath.ToSlash(exe)),
	}
}

// facts examines a module's file, unless that was done before.
func (f *finder) facts(t *target.Process, m target.Module) *facts {
	key := m.ID()
	if k, ok := f.files[key]; ok {
		return k
	}
	if len(f.files) >= maxFiles {
		clear(f.files)
	}
	var k *facts
	x, _ := m.Executable()
	if file, err := t.OpenFile(x); err == nil {
		defer file.Close()
		image, err := objfile.Open(file)
		if err != nil {
			f.files[key] = nil
			return nil
		}
		exports, progs := image.Exports(), image.Segments
		if table, ok := exports.Lookup("g_dacTable"); ok && table != 0 {
			descriptor, _ := exports.Lookup("DotNetRuntimeContractDescriptor")
			k = &facts{dacTable: table, descriptor: descriptor, progs: progs, version: runtimes.CoreCLRVersion(file, m.Path)}
			k.chain, k.restore = codeIn(file, progs)
		} else if path.Base(m.Path) == library {
			k = &facts{version: runtimes.CoreCLRVersion(file, m.Path)} // up to .NET 5 it exports nothing
		}
	}
	f.files[key] = k
	return k
}

// codeIn looks for the code that coreclr.FindChain and FindRestore find in a file, and returns its addresses
// there; 0 for what is nowhere.
func codeIn(file io.ReaderAt, progs []objfile.Segment) (chain, restore uint64) {
	const piece, overlap, most = 1 << 20, 256, 64 << 20
	buf := make([]byte, piece)
	for _, p := range progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 {
			continue
		}
		for off, size := uint64(0), min(p.Filesz, most); off < size; off += piece - overlap {
			n, _ := file.ReadAt(buf[:min(piece, size-off)], int64(p.Off+off))
			if at := coreclr.FindChain(buf[:n]); at >= 0 && chain == 0 {
				chain = p.Vaddr + off + uint64(at)
			}
			if at := coreclr.FindRestore(buf[:n]); at >= 0 && restore == 0 {
				restore = p.Vaddr + off + uint64(at)
			}
			if n < piece || chain != 0 && restore != 0 {
				break
			}
		}
	}
	return chain, restore
}

// instance is the CoreCLR of one process.
type instance struct {
	*coreclr.VM
	process  *target.Process
	native   *native.Stepper // nil if stacks are not walked
	listed   map[uint32]bool // threads that the runtime knew when it was last asked
	observer observer
}

var (
	_ runtimes.Instance = (*instance)(nil)
	_ runtimes.Learner  = (*instance)(nil)
)

// Title implements runtimes.Instance.
func (i *instance) Title() string { return runtimes.CoreCLR.String() + " " + i.Version() }

// Stepper implements runtimes.Instance.
func (i *instance) Stepper() walk.Stepper { return i.VM }

// Resolver implements runtimes.Instance.
func (i *instance) Resolver(symbol.Resolver) symbol.Resolver { return i.VM }

// ByRef implements runtimes.Instance.
func (i *instance) ByRef() bool { return true }
