package doctor

import (
	"errors"
	"os"

	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/fileblocks"
	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
)

// module examines one file of the target.
func (e *examiner) module(m target.Module) Module {
	row := Module{Path: printable(m.Path), State: No, Symbols: "unreadable"}
	x, _ := m.Executable()
	file, err := e.p.OpenFile(x)
	if err != nil {
		row.Note = "it cannot be read: " + printable(errText(err))
		if errors.Is(err, target.ErrStale) || m.Deleted {
			row.Note = "the file has been replaced or removed since it was loaded"
		}
		return row
	}
	if f, err := objfile.Open(fileblocks.Open(file)); err == nil {
		_, err := ehframe.Open(f)
		row.Unwind = err == nil
	}
	s, err := symbol.Open(file, symbol.Options{Path: m.Path, OpenDebug: func(path string) (*os.File, error) { return symbol.OpenDebug(e.p.OpenInRoot, path) }})
	if err != nil {
		row.Symbols, row.Note = string(symbol.OriginNone), "it is no ELF file"
		return row
	}
	defer s.Close()
	origin := s.Origin()
	row.Symbols, row.Count, row.Lines = string(origin), s.Symbols(), s.HasLines()
	switch origin {
	case symbol.OriginSymtab, symbol.OriginDebugFile, symbol.OriginGo, symbol.OriginMini:
		row.State = OK
	case symbol.OriginDynsym:
		row.State = Limited
	}
	if !row.Unwind && row.State == OK {
		row.State = Limited
	}
	if notes := s.Notes(); len(notes) > 0 {
		row.Note = printable(errText(notes[0]))
	}
	return row
}
