package perfevent

import (
	"debug/elf"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/objfile"
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
				if opened, err := proc.OpenFile(m); err == nil {
					if f, ok := opened.(*os.File); ok {
						return f, nil
					}
					_ = opened.Close()
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
	image, err := objfile.Open(f)
	if err != nil {
		return fail("it is no ELF file: " + err.Error())
	}
	sym, ok := symbolOf(image, p.Function)
	if !ok {
		return fail("it has no function of that name" + alike(image, p.Function))
	}
	if sym.Type() == elf.STT_GNU_IFUNC {
		return fail("which code that is, is chosen when the program starts (an indirect function); give the one that was, or an offset")
	}
	for _, s := range image.Segments {
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

// symbolOf returns the function of that name that the file defines.
func symbolOf(image *objfile.File, name string) (found objfile.Symbol, ok bool) {
	for _, table := range []elf.SectionType{elf.SHT_DYNSYM, elf.SHT_SYMTAB} {
		_ = image.Symbols(table, func(s objfile.Symbol, text []byte) bool {
			if kind := s.Type(); string(text) == name && s.Section != elf.SHN_UNDEF && (kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC) {
				found, ok = s, true
			}
			return !ok
		})
		if ok {
			break
		}
	}
	return found, ok
}

// alike lists functions with names similar to name, for an error.
func alike(image *objfile.File, name string) string {
	const most = 3
	var names []string
	_ = image.Symbols(elf.SHT_DYNSYM, func(s objfile.Symbol, text []byte) bool {
		if s.Section != elf.SHN_UNDEF && s.Type() == elf.STT_FUNC && len(name) > 2 && strings.Contains(strings.ToLower(string(text)), strings.ToLower(name)) {
			names = append(names, string(text))
		}
		return len(names) < most
	})
	if len(names) == 0 {
		return ""
	}
	return ": there are " + strings.Join(names, ", ")
}
