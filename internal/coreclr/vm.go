package coreclr

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// VM is the CoreCLR of one process: a walk.Stepper for managed code, and the names of its frames. It
// is used from one goroutine.
type VM struct {
	mem     memory
	version string
	lay     layout
	desc    *descriptor // nil: the runtime publishes none
	system  System
	native  Code // nil: nothing is known of it
	files   Files

	batch      uint32
	sections   sectionTable
	code       codeTable
	names      nameTable
	chain      uint64 // chainCode
	restore    uint64 // restoreCode
	dac        uint64 // g_dacTable
	lockFields lockFields
	ownFile    fileid.ID // from which code is mapped twice on Windows, once it is known
	modules    map[uint64]*module
	reader     native.Reader
	stubCode   [maxStub]byte
	notes      []string
}

// memory is the process's memory, through a cache that lasts for a batch.
type memory interface {
	target.Reader
	walk.Memory
}

// Symbols are the addresses of variables that the runtime exports; 0 for those that it does not.
type Symbols struct {
	DacTable   uint64 // g_dacTable
	Descriptor uint64 // DotNetRuntimeContractDescriptor
	Chain      uint64 // the code that FindChain looks for, which is not exported
	Restore    uint64 // the same of FindRestore
}

// System is what matters of the system that the runtime was built for. The zero System is Unix.
type System struct {
	Windows bool
	Arch    cpu.Arch // 0: this machine's
	// TID returns candid's id of a thread by the one that the runtime knows; false if there is no such
	// thread any more. nil: they are the same.
	TID func(uint32) (uint32, bool)
}

// File is a file that is read in places.
type File interface {
	ReadAt(p []byte, off int64) (int, error)
	Close() error
}

// Open reads the runtime of a process. version is "9.0.5". The error wraps ErrNotReady, ErrVersion
// or ErrPlatform. code may be nil.
func Open(mem memory, version string, at Symbols, on System, code Code, files Files) (*VM, error) {
	if cmp.Or(on.Arch, cpu.Host()) != cpu.AMD64 {
		return nil, ErrPlatform
	}
	major, _ := strconv.Atoi(version[:max(strings.IndexByte(version, '.'), 0)])
	vm := &VM{mem: mem, version: version, system: on, native: code, files: files, chain: at.Chain, restore: at.Restore, dac: at.DacTable, batch: 1, modules: map[uint64]*module{}}
	var err error
	if vm.lay, err = layoutOf(major, on.Windows); err != nil {
		return nil, fmt.Errorf("read CoreCLR %s: %w", version, err)
	}
	if at.Descriptor != 0 {
		if vm.desc, err = readDescriptor(mem, at.Descriptor); err == nil {
			vm.lay.publish(vm.desc)
		} else if major >= 10 {
			return nil, fmt.Errorf("read CoreCLR %s: %w", version, err)
		}
	}
	// The first entry of the table is the map of code (src/coreclr/inc/dacvars.h); it is what the
	// descriptor calls ExecutionManagerCodeRangeMapAddress.
	root, ok := vm.mem.Word(at.DacTable)
	if vm.desc != nil {
		if p, ok := vm.desc.pointer("ExecutionManagerCodeRangeMapAddress"); ok {
			root = p
		}
	}
	if !ok || root == 0 {
		return nil, fmt.Errorf("read CoreCLR %s: its map of code is not there: %w", version, ErrNotReady)
	}
	if vm.lay.ready.info == 0 || vm.lay.table.module == 0 {
		return nil, fmt.Errorf("read CoreCLR %s: it does not publish what is needed: %w", version, ErrDescriptor)
	}
	vm.sections.root = root
	vm.code.open()
	vm.names.open()
	return vm, nil
}

// Version returns the version, "9.0.5".
func (vm *VM) Version() string { return vm.version }

// Notes returns what does not work with this runtime, and why, one sentence each.
func (vm *VM) Notes() []string { return vm.notes }

// Learned returns how many pieces of code have been read so far.
func (vm *VM) Learned() int { return len(vm.code.all) }

// GCHeap returns the address of the interface of the garbage collector (IGCHeap); 0 as long as there is
// none. Its place in g_dacTable is that of src/coreclr/inc/dacvars.h.
func (vm *VM) GCHeap() uint64 {
	at, err := vm.word(vm.dac + 8*vm.lay.gc.heap)
	if err != nil || at == 0 {
		return 0
	}
	heap, err := vm.word(at)
	if err != nil {
		return 0
	}
	return heap
}

// ServerGC reports whether the collector is the one for servers, with a heap for each CPU; ok is false if
// that cannot be told (src/coreclr/gc/gcinterface.h: GCHeapType).
func (vm *VM) ServerGC() (server, ok bool) {
	at, err := vm.word(vm.dac + 8*vm.lay.gc.kind)
	if err != nil || at == 0 {
		return false, false
	}
	var b [4]byte
	if vm.mem.ReadAt(b[:], at) != nil {
		return false, false
	}
	const workstation, forServers = 1, 2
	kind := binary.LittleEndian.Uint32(b[:])
	return kind == forServers, kind == workstation || kind == forServers
}

// BeginBatch makes what is cached safe to use for the samples that follow. It must be called after
// the cache of the process's memory was dropped.
func (vm *VM) BeginBatch() {
	vm.batch++
	vm.checkSections()
}

// ended reports whether nothing of the process can be read any more because it is ending. The
// samples that are still to be walked were taken while its code was there, so what is known is kept.
func (vm *VM) ended() bool {
	_, err := vm.word(vm.sections.root)
	return err != nil
}

var _ walk.Stepper = (*VM)(nil)
