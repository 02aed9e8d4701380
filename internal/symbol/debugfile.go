package symbol

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/fileblocks"
)

const (
	debugDir   = "/usr/lib/debug"
	maxCRCFile = 1 << 30
)

// openDebugFile looks for the file's separate debug information, by build-id and then by
// .gnu_debuglink, in the places that GDB's manual ("Separate Debug Files") lists.
func (f *File) openDebugFile() *image {
	if f.opt.OpenDebug == nil {
		return nil
	}
	id := f.m.buildID()
	if len(id) > 2 {
		if m := f.tryDebug(buildIDDir+id[:2]+"/"+id[2:]+".debug", id, nil); m != nil {
			return m
		}
	}
	s := f.m.find(".gnu_debuglink")
	if s == nil {
		return nil
	}
	b, err := f.m.raw(s, 4096)
	if err != nil {
		return nil
	}
	tries, crc := debugLink(b, f.m.order, f.opt.Path)
	for _, p := range tries {
		if m := f.tryDebug(p, id, &crc); m != nil {
			return m
		}
	}
	return nil
}

// debugLink reads the section .gnu_debuglink of the file at a path, and returns where the file of
// debug information may be and its checksum.
func debugLink(b []byte, order binary.ByteOrder, file string) (tries []string, crc uint32) {
	name := cString(b, 0, 255)
	at := (len(name) + 4) &^ 3 // after the name and its zero, aligned
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") || at+4 > len(b) {
		return nil, 0
	}
	if file != "" {
		dir := path.Dir(file)
		tries = append(tries, path.Join(dir, name), path.Join(dir, ".debug", name), path.Join(debugDir, dir, name))
	}
	tries = append(tries, path.Join(debugDir, name))
	return slices.DeleteFunc(tries, func(p string) bool { return p == file }), order.Uint32(b[at:])
}

// tryDebug opens one candidate and checks that it belongs to the file: by build-id if both have
// one, else by the checksum of the debug link.
func (f *File) tryDebug(p, id string, crc *uint32) *image {
	file, err := f.opt.OpenDebug(p)
	if err != nil {
		return nil
	}
	st, err := file.Stat()
	if err != nil || !st.Mode().IsRegular() {
		file.Close()
		return nil
	}
	m, err := openImage(fileblocks.Open(file), st.Size())
	if err == nil && m.machine != f.m.machine {
		err = fmt.Errorf("made for %v", m.machine)
	}
	if err == nil {
		switch got := m.buildID(); {
		case id != "" && got != "":
			if got != id {
				err = fmt.Errorf("its build-id is %s, not %s", got, id)
			}
		case crc == nil:
			err = fmt.Errorf("it has no build-id")
		default:
			err = checkCRC(file, st.Size(), *crc)
		}
	}
	if err != nil {
		file.Close()
		f.notes = append(f.notes, fmt.Errorf("debug file %s is not used: %w", p, err))
		return nil
	}
	f.close = append(f.close, file)
	return m
}

func checkCRC(r io.ReaderAt, size int64, want uint32) error {
	if size > maxCRCFile {
		return ErrTooLarge
	}
	h := crc32.NewIEEE()
	if _, err := io.Copy(h, io.NewSectionReader(r, 0, size)); err != nil {
		return err
	}
	if h.Sum32() != want {
		return fmt.Errorf("its checksum is %08x, not %08x", h.Sum32(), want)
	}
	return nil
}
