package perfevent

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
)

// Found is where a probe is set: a file, and the offset of an instruction in it.
type Found struct {
	File   *os.File // closed by the caller
	Offset uint64
	Return bool
}

// libraryDirs are the directories of libraries that a program has not mapped yet, those of the
// system's own architecture first (ld.so's own defaults, and Debian's).
var libraryDirs = []string{"/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
	"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib", "/usr/lib", "/usr/local/lib"}

// FindPlace finds where to set a probe in a process: the library by the process's mappings or as a
// path in its root, the function by the file's symbols. The error wraps capture.ErrNoEvent if there
// is no such library or function.
func FindPlace(pid int, p capture.Place) (Found, error) {
	proc, err := target.Open(pid)
	if err != nil {
		return Found{}, fmt.Errorf("find %s for a probe: %w", p.Library, err)
	}
	defer proc.Close()
	f, err := openLibrary(proc, p.Library)
	if err != nil {
		return Found{}, err
	}
	off, err := offsetOf(f, p)
	if err != nil {
		_ = f.Close()
		return Found{}, err
	}
	return Found{File: f, Offset: off, Return: p.Return}, nil
}

func openLibrary(proc *target.Process, name string) (*os.File, error) {
	if strings.HasPrefix(name, "/") {
		f, err := proc.OpenInRoot(name)
		if err != nil {
			return nil, fmt.Errorf("%w: put a probe into %s: %w", capture.ErrNoEvent, name, err)
		}
		return f, nil
	}
	if maps, err := proc.Mappings(); err == nil {
		for _, m := range maps {
			if m.Inode != 0 && path.Base(m.Path) == name {
				if f, err := proc.OpenFile(m); err == nil {
					return f, nil
				}
			}
		}
	}
	// It may be mapped later: a program that is being launched has mapped nothing of its own yet.
	if path.Base(name) == name {
		for _, dir := range libraryDirs {
			if f, err := proc.OpenInRoot(dir + "/" + name); err == nil {
				return f, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: put a probe into %s: process %d has mapped no file of that name, and its system's directories have none; give its path",
		capture.ErrNoEvent, name, proc.PID)
}

// offsetOf returns a place's offset in the file.
func offsetOf(f *os.File, p capture.Place) (off uint64, err error) {
	if p.Function == "" {
		return p.Offset, nil
	}
	fail := func(why string) (uint64, error) {
		return 0, fmt.Errorf("%w: put a probe on %s of %s: %s", capture.ErrNoEvent, p.Function, p.Library, why)
	}
	image, err := elf.NewFile(f)
	if err != nil {
		return fail("it is no ELF file: " + err.Error())
	}
	defer image.Close()
	sym, ok := symbolOf(image, p.Function)
	if !ok {
		return fail("it has no function of that name" + alike(image, p.Function))
	}
	if sym.Info&0xf == sttGNUIFunc {
		return fail("which code that is, is chosen when the program starts (an indirect function); give the one that was, or an offset")
	}
	for _, s := range image.Progs {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 && sym.Value >= s.Vaddr && sym.Value-s.Vaddr < s.Filesz {
			off = sym.Value - s.Vaddr + s.Off + p.Offset
			if sym.Size > 0 && p.Offset >= sym.Size {
				return fail(fmt.Sprintf("+%#x is beyond its end at +%#x", p.Offset, sym.Size))
			}
			return off, nil
		}
	}
	return fail("its code is not in the file")
}

// sttGNUIFunc is STT_GNU_IFUNC of elf.h.
const sttGNUIFunc = 10

func symbolOf(image *elf.File, name string) (elf.Symbol, bool) {
	for _, list := range []func() ([]elf.Symbol, error){image.DynamicSymbols, image.Symbols} {
		syms, err := list()
		if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
			continue
		}
		for _, s := range syms {
			if kind := s.Info & 0xf; s.Name == name && s.Section != elf.SHN_UNDEF && (kind == uint8(elf.STT_FUNC) || kind == sttGNUIFunc) {
				return s, true
			}
		}
	}
	return elf.Symbol{}, false
}

// alike lists functions with names similar to name, for an error.
func alike(image *elf.File, name string) string {
	var names []string
	syms, _ := image.DynamicSymbols()
	for _, s := range syms {
		if s.Section != elf.SHN_UNDEF && s.Info&0xf == uint8(elf.STT_FUNC) && len(name) > 2 && strings.Contains(strings.ToLower(s.Name), strings.ToLower(name)) {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ": there are " + strings.Join(names[:min(3, len(names))], ", ")
}
