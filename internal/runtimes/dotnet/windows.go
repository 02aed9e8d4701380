package dotnet

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/coreclr"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/pe"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/wine"
)

// windowsLibrary is the name of the runtime's file on Windows where it is not a part of the program's own.
const windowsLibrary = "coreclr.dll"

// windowsFacts are what an image of Windows exports, relative to its base.
type windowsFacts struct {
	dacTable, descriptor uint32
}

// maxImages bounds the images of a process that are looked at. There is one program in most.
const maxImages = 64

// openWindows finds the CoreCLR of a program of Windows, in Wine too; nil if there is none. The images
// are read from memory, which need not be mapped from the files.
func (f *finder) openWindows(t *target.Process, code *native.Stepper) (runtimes.Instance, error) {
	maps, err := t.Mappings()
	if err != nil {
		return nil, err
	}
	looked := 0
	for i := range maps {
		m := &maps[i]
		base := strings.ToLower(target.BaseName(m.Path))
		// A part of a file that is mapped to be read is no image.
		if !m.FileBacked() || m.Offset != 0 || m.Perm&target.PermShared != 0 || base != windowsLibrary && !strings.HasSuffix(base, ".exe") || looked == maxImages {
			continue
		}
		looked++
		k := f.windowsFacts(t, *m)
		switch {
		case k == nil:
			continue
		case k.windows.dacTable == 0:
			return nil, fmt.Errorf("open CoreCLR of process %d (%s): CoreCLR %s: %w", t.PID, m.Path, k.version, coreclr.ErrVersion)
		}
		at := coreclr.Symbols{DacTable: m.Start + uint64(k.windows.dacTable)}
		if k.windows.descriptor != 0 {
			at.Descriptor = m.Start + uint64(k.windows.descriptor)
		}
		on := coreclr.System{Windows: true}
		switch w, err := wine.Open(t); {
		case err == nil:
			on.TID = (&threadIDs{wine: w}).outside
		case !errors.Is(err, wine.ErrNotWine):
			return nil, runtimes.Mark(fmt.Errorf("open CoreCLR of process %d (%s): %w", t.PID, m.Path, err), runtimes.ErrNotReady)
		}
		return f.open(t, code, m.Path, m.Path, k.version, at, on)
	}
	return nil, nil
}

// windowsFacts examines the image that begins with a mapping, unless that was done before.
func (f *finder) windowsFacts(t *target.Process, m target.Mapping) *facts {
	key := m.ID()
	if k, ok := f.files[key]; ok && (k == nil || k.windows != nil) {
		return k
	}
	if len(f.files) >= maxFiles {
		clear(f.files)
	}
	k := readWindows(t.Memory(), m.Start, m.Path)
	f.files[key] = k
	return k
}

// readWindows looks for the runtime in an image that is loaded at base; nil if there is none.
func readWindows(mem pe.Memory, base uint64, path string) *facts {
	image, err := pe.Load(mem, base)
	if err != nil || image.Machine != pe.MachineAMD64 {
		return nil
	}
	exports, err := image.Exports()
	if err != nil {
		return nil
	}
	k := &facts{windows: &windowsFacts{}}
	is := false
	for _, e := range exports {
		switch e.Name {
		case "g_dacTable":
			k.windows.dacTable = e.RVA
		case "DotNetRuntimeContractDescriptor":
			k.windows.descriptor = e.RVA
		case "coreclr_execute_assembly":
			is = true
		}
	}
	if k.windows.dacTable == 0 && !is {
		return nil
	}
	k.version = runtimes.WindowsCoreCLRVersion(image, exports, path)
	return k
}

// threadIDs translates the thread ids of Windows into those of the system that Wine runs on.
type threadIDs struct {
	wine  *wine.Process
	known map[uint32]uint32
	read  time.Time
}

// threadsAgain is how old the list of threads may be if one is not in it.
const threadsAgain = 100 * time.Millisecond

func (t *threadIDs) outside(id uint32) (uint32, bool) {
	tid, ok := t.known[id]
	if now := time.Now(); !ok && now.Sub(t.read) > threadsAgain {
		t.known, t.read = t.wine.Threads(), now
		tid, ok = t.known[id]
	}
	return tid, ok
}
