package symbol

import (
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"strings"

	"github.com/candid-profiler/candid/internal/fileblocks"
	"github.com/candid-profiler/candid/internal/pdb"
	"github.com/candid-profiler/candid/internal/pe"
)

// addPDB reads the functions of the image's program database, if it is on this machine.
func (f *peFile) addPDB() error {
	id, err := f.PDB()
	if err != nil {
		return err
	}
	file, db := f.openPDB(id)
	if db == nil {
		return fmt.Errorf("%s: %w", id.Path, pe.ErrAbsent)
	}
	f.pdb, f.close = db, file
	src := uint8(len(f.table.strings))
	var names []byte
	err = db.Functions(func(fn pdb.Function) {
		rva, ok := f.Address(fn.Segment, fn.Offset)
		if !ok || fn.Name == "" || len(f.table.syms) >= maxSymbols || len(names) > math.MaxUint32/2 {
			return
		}
		e := entry{addr: uint64(rva), size: fn.Size, name: uint32(len(names)), rank: rankGlobal, src: src}
		if fn.Public {
			e.rank = rankWeak
		}
		f.table.syms = append(f.table.syms, e)
		names = append(append(names, fn.Name...), 0)
	})
	f.table.strings = append(f.table.strings, strtab{mem: names})
	return err
}

// openPDB looks for the program database with the image's identity: where the linker wrote it,
// beside the image, and in the folders of _NT_SYMBOL_PATH.
func (f *peFile) openPDB(id pe.PDB) (io.Closer, *pdb.File) {
	if f.opt.OpenDebug == nil || id.Path == "" {
		return nil, nil
	}
	for _, p := range pdbPaths(id, f.opt.Path, os.Getenv("_NT_SYMBOL_PATH")) {
		file, err := f.opt.OpenDebug(p)
		if err != nil {
			continue
		}
		db, err := pdb.Open(fileblocks.Open(file))
		if err == nil && db.GUID == id.GUID {
			return file, db
		}
		if err != nil {
			f.notes = append(f.notes, fmt.Errorf("%s: %w", p, err))
		}
		file.Close()
	}
	return nil, nil
}

// pdbPaths returns where a program database may be. Of a symbol path, only folders of this machine
// are used, which may be caches of symbol servers (srv*folder*https://…).
func pdbPaths(id pe.PDB, image, symbolPath string) (out []string) {
	written := strings.ReplaceAll(id.Path, `\`, "/")
	if len(written) > 2 && written[1] == ':' {
		written = written[2:] // Wine's drive Z: is the root of the file system
	}
	name := path.Base(written)
	if path.IsAbs(written) {
		out = append(out, path.Clean(written))
	}
	if image != "" {
		out = append(out, path.Join(path.Dir(image), name))
	}
	for _, part := range strings.Split(symbolPath, ";") {
		for i, dir := range strings.Split(part, "*") {
			if i == 0 && (strings.EqualFold(dir, "srv") || strings.EqualFold(dir, "cache") || strings.EqualFold(dir, "symsrv")) || !path.IsAbs(dir) {
				continue
			}
			out = append(out, path.Join(dir, name, id.ID(), name), path.Join(dir, name))
		}
	}
	return out
}
