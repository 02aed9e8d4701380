package attach

import (
	"fmt"
	"os"

	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Places tells the symbolizer which files the frames of one process's native code come from.
type Places struct{ *native.Stepper }

// Locate implements symbol.Locator.
func (p Places) Locate(f walk.Frame) (symbol.Place, bool) {
	m, addr, ok := p.Stepper.Locate(f)
	if !ok {
		return symbol.Place{}, false
	}
	pl := symbol.Place{
		File: m.Mapping.ID(),
		Name: m.Name(), Path: m.Mapping.Path, Addr: addr,
	}
	if m.File != nil {
		pl.Content = m.File.ID
	}
	return pl, true
}

// Locate returns the file that holds the machine code at pc.
func (p *Process) Locate(pc uint64) (symbol.Place, bool) {
	f, ok := p.Native.Frame(pc, 0)
	if !ok {
		return symbol.Place{}, false
	}
	return Places{p.Native}.Locate(f)
}

// Open implements symbol.Locator.
func (p Places) Open(pl symbol.Place) (target.File, error) {
	for _, m := range p.Modules() {
		if m.Mapping.Dev == pl.File.Dev && m.Mapping.Inode == pl.File.Inode && m.Mapping.Path == pl.Path {
			return m.Open()
		}
	}
	return nil, fmt.Errorf("open %s: it is not mapped any more: %w", pl.Path, os.ErrNotExist)
}
