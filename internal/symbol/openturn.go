package symbol

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/candid-profiler/candid/internal/target"
)

// opened is the result of reading a file.
type opened struct {
	f     *File // nil if it could not be opened
	err   error
	brief bool // it may have source lines that were not wanted
}

// linesTurn is held while the source lines of a file are read. They are most of the work and of the
// memory of reading it, and those of several files need not be read at the same time.
var linesTurn sync.Mutex

// openTurns bounds how many files are read at the same time. When a recording of a whole machine
// begins, all of its files come at once. Each would be a goroutine that competes for a CPU with the
// one that reads samples from the kernel's buffer.
var openTurns = make(chan struct{}, max(1, runtime.NumCPU()-1))

func openInTurn(f target.File, opt Options) (*File, error) {
	openTurns <- struct{}{}
	defer func() { <-openTurns }()
	return Open(f, opt)
}

// read reads a file's symbols and lines and sends the result.
func read(f target.File, opt Options, vdso bool, wanted func() bool, room func(uint64) bool, early, to chan<- opened) {
	var o opened
	defer func() {
		if r := recover(); r != nil {
			o = opened{err: fmt.Errorf("candid has a fault, please report it: reading symbols: %v", r)}
		}
		to <- o
	}()
	if o.f, o.err = openInTurn(f, opt); o.err != nil && vdso {
		o.f, o.err = ownVDSO()
	}
	if o.err != nil || opt.NoLines {
		return
	}
	if o.f.hasLines() {
		early <- opened{f: o.f.withoutLines(), brief: true}
		o.brief = !readInTurn(o.f, wanted, room)
	}
}

// readInTurn reads the source lines of f, if they are still wanted when it is its turn and there is
// room.
func readInTurn(f *File, wanted func() bool, room func(uint64) bool) bool {
	if wanted == nil || wanted() {
		linesTurn.Lock()
		defer linesTurn.Unlock()
		// Much time may have passed before its turn.
		expected := f.linesMemory()
		if (wanted == nil || wanted()) && f.opt.Budget.wantsLines() && (room == nil || room(expected)) {
			f.readLines()
			d := f.lineData()
			if d == nil || room == nil {
				return true
			}
			// A hostile file may list many more units and ranges than a compiler writes.
			if takes := uint64(d.Memory()); takes <= expected || room(takes-expected) {
				return true
			}
		}
	}
	f.dropLines()
	return false
}

// readAgain reads the source lines of a file that dozes, and sends the result.
func readAgain(o opened, wanted func() bool, room func(uint64) bool, to chan<- opened) {
	defer func() {
		if r := recover(); r != nil {
			o.f.dropLines()
			o.f.notes = append(o.f.notes, fmt.Errorf("candid has a fault, please report it: reading source lines: %v", r))
		}
		to <- o
	}()
	o.f.wake()
	o.brief = !readInTurn(o.f, wanted, room)
}
