package symbol

import (
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"slices"

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
	id := f.m.BuildID()
	if len(id) > 2 {
		if m := f.tryDebug(buildIDDir+id[:2]+"/"+id[2:]+".debug", id, nil); m != nil {
			return m
		}
	}
	name, crc, ok := f.m.DebugLink()
	if !ok {
		return nil
	}
	for _, p := range debugPaths(name, f.opt.Path) {
		if m := f.tryDebug(p, id, &crc); m != nil {
			return m
		}
	}
	return nil
}

// debugPaths returns where the file of debug information may be that the debug link of the file at a path
// names.
func debugPaths(name, file string) (tries []string) {
	if file != "" {
		dir := path.Dir(file)
		tries = append(tries, path.Join(dir, name), path.Join(dir, ".debug", name), path.Join(debugDir, dir, name))
	}
	tries = append(tries, path.Join(debugDir, name))
	return slices.DeleteFunc(tries, func(p string) bool { return p == file })
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
	if err == nil && m.Machine != f.m.Machine {
		err = fmt.Errorf("made for %v", m.Machine)
	}
	if err == nil {
		switch got := m.BuildID(); {
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
