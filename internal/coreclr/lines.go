package coreclr

import (
	"bytes"
	"encoding/binary"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/candid-profiler/candid/internal/clrdebug"
	"github.com/candid-profiler/candid/internal/portablepdb"
	"github.com/candid-profiler/candid/internal/target"
)

// Entries of an image's debug directory (docs/design/specs/PE-COFF.md).
const (
	debugCodeView = 2
	debugEmbedded = 17
	debugEntry    = 28      // bytes
	maxDebug      = 64      // entries
	maxPDB        = 1 << 26 // bytes
)

// Files are the files of a process.
type Files struct {
	// Open opens a file that the process knows by a path.
	Open func(path string) (File, error)
	// Hold returns the file of a mapping, which stays open after the process has ended; nil: files cannot be held.
	Hold func(target.Mapping) (io.ReaderAt, error)
	// At returns the path of the file that is mapped at an address, "" if none is.
	At func(addr uint64) string
	// Dir is the directory of the program's file.
	Dir string
}

// line returns the source line of a position in a method's code; it is false if there is none.
func (vm *VM) line(c *code, n *named, off uint32) (file string, line int32, ok bool) {
	if n.module == nil || n.token == 0 || c.debug == 0 {
		return "", 0, false
	}
	pdb := vm.pdbOf(n.module)
	if pdb == nil {
		return "", 0, false
	}
	if !c.bounded {
		c.bounds, c.bounded = vm.boundaries(c), true
	}
	il, ok := clrdebug.InstructionAt(c.bounds, off)
	if !ok {
		return "", 0, false
	}
	return pdb.Line(n.token, il)
}

// lineAt returns the source line of an instruction of a method; it is false if there is none.
func (vm *VM) lineAt(n *named, il int32) (file string, line int32, ok bool) {
	if n.module == nil || n.token == 0 || il < 0 {
		return "", 0, false
	}
	pdb := vm.pdbOf(n.module)
	if pdb == nil {
		return "", 0, false
	}
	return pdb.Line(n.token, uint32(il))
}

// pdbOf returns the debug information of a module, nil if there is none: embedded in its image, or
// in a file beside it or where it was built. It is used only if it belongs to the same build.
func (vm *VM) pdbOf(m *module) *portablepdb.PDB {
	if m.looked || m.image == nil {
		return m.pdb
	}
	m.looked = true
	img := m.image
	var id portablepdb.ID
	name := ""
	for i := uint32(0); i < min(img.debug[1]/debugEntry, maxDebug); i++ {
		var e [debugEntry]byte
		if at := img.address(img.debug[0] + i*debugEntry); at == 0 || !img.mem.Bytes(at, e[:]) {
			return nil
		}
		le := binary.LittleEndian
		stamp, typ, size, rva := e[4:8], le.Uint32(e[12:]), le.Uint32(e[16:]), le.Uint32(e[20:])
		at := img.address(rva)
		if at == 0 || size < 24 || size > maxPDB {
			continue
		}
		switch typ {
		case debugCodeView:
			data := make([]byte, min(size, maxPath))
			if img.mem.Bytes(at, data) && string(data[:4]) == "RSDS" {
				copy(id[:16], data[4:20])
				copy(id[16:], stamp)
				file, _, _ := strings.Cut(string(data[24:]), "\x00")
				name = strings.ReplaceAll(file, `\`, "/")
			}
		case debugEmbedded:
			data := make([]byte, size)
			if !img.mem.Bytes(at, data) {
				continue
			}
			if b, err := portablepdb.Inflate(data); err == nil {
				if m.pdb, err = portablepdb.Open(bytes.NewReader(b), id); err == nil {
					return m.pdb
				}
			}
		}
	}
	if name == "" || vm.files.Open == nil {
		return nil
	}
	base := path.Base(name)
	var places []string
	// A program in Wine knows paths of Windows, under which candid finds nothing outside.
	if !filepath.IsAbs(m.path) && vm.files.At != nil {
		m.path = vm.files.At(img.base)
	}
	for _, dir := range []string{path.Dir(filepath.ToSlash(m.path)), vm.files.Dir} {
		if filepath.IsAbs(dir) {
			places = append(places, path.Join(dir, base))
		}
	}
	if filepath.IsAbs(name) {
		places = append(places, name)
	}
	for _, p := range places {
		f, err := vm.files.Open(p)
		if err != nil {
			continue
		}
		b, err := io.ReadAll(io.NewSectionReader(f, 0, maxPDB+1))
		f.Close()
		if err != nil || len(b) > maxPDB {
			continue
		}
		if m.pdb, err = portablepdb.Open(bytes.NewReader(b), id); err == nil {
			return m.pdb
		}
		m.pdb = nil
	}
	return nil
}
