package hotspot

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot/metadata"
	"github.com/candid-profiler/candid/internal/hotspot/threads"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// VM is a Java VM in another process, as read so far. It is used from one goroutine.
type VM struct {
	vmstructs.VM
	*threads.Threads

	// Clock is the clock of walk.Cursor.Time, nil if there is none to compare with.
	Clock func() uint64

	off offsets

	callStubReturn       uint64 // where the call stub continues after Java code returns; 0 if unknown
	interpLo, interpHi   uint64 // the template interpreter
	interpWords          interpreterWords
	continuationReturnPC uint64 // ContinuationEntry::_return_pc; 0 if unknown

	died uint64 // how many cached blobs and methods were found replaced

	code    codeCache
	methods methodTable
	names   resolver
	heap    *metadata.Heap
	conts   continuations

	archive archive

	stepping stepping // state of the rules for stepping over frames
}

// Open finds the Java VM in p and reads its tables. The error wraps vmstructs.ErrNotHotSpot if
// there is none and vmstructs.ErrNotReady if it is still starting. p stays the caller's and must
// outlive the VM.
func Open(p *target.Process) (*VM, error) { return openIn(p, nil) }

// openIn is Open, sharing what is known of files; known may be nil.
func openIn(p *target.Process, known *Finder) (*VM, error) {
	of, maps, err := vmstructs.Open(p, known.vms())
	if err != nil {
		return nil, err
	}
	vm, err := open(of, known)
	if err != nil {
		return nil, fmt.Errorf("open the Java VM of process %d (%s): %w", p.PID, of.File, err)
	}
	if vm.Arch == cpu.AMD64 { // the form of the archive's code elsewhere is not known
		vm.archive = archiveIn(maps)
	}
	return vm, nil
}

// Finder opens Java VMs of many processes. It remembers which files hold none, and shares between
// VMs of the same library what they have in common. It is used from one goroutine.
type Finder struct {
	*vmstructs.Finder
	room *standingRoom // scratch space for looking at places, which one VM uses at a time
}

// NewFinder returns a Finder that knows no file.
func NewFinder() *Finder { return &Finder{Finder: vmstructs.NewFinder(), room: &standingRoom{}} }

// Open is Open, except that it uses and updates what the Finder knows.
func (f *Finder) Open(p *target.Process) (*VM, error) { return openIn(p, f) }

// vms returns what is known of files, nil if there is no Finder.
func (f *Finder) vms() *vmstructs.Finder {
	if f == nil {
		return nil
	}
	return f.Finder
}

// standing returns the scratch space, which is the VM's own if there is no Finder.
func (f *Finder) standing() *standingRoom {
	if f == nil {
		return &standingRoom{}
	}
	return f.room
}

// OpenReader reads the VM's tables from a memory image; symbols holds the
// addresses of the exported gHotSpotVM* variables.
func OpenReader(r target.Reader, symbols map[string]uint64) (*VM, error) {
	of, err := vmstructs.OpenReader(r, symbols, nil)
	if err != nil {
		return nil, err
	}
	return open(of, nil)
}

// open shares with the other VMs of known, which may be nil, what they have in common.
func open(of *vmstructs.VM, known *Finder) (*VM, error) {
	vm := &VM{VM: *of}
	vm.off = newOffsets(&vm.VM)
	vm.code.standing = known.standing()
	if err := vm.openCode(); err != nil {
		return nil, err
	}
	vm.heap = metadata.NewHeap(&vm.VM)
	vm.openMethods()
	vm.openNames()
	vm.Threads = threads.New(&vm.VM, vm.heap, vm.methodName)
	return vm, nil
}

// CompressedOopsMode is metadata.Heap's.
func (vm *VM) CompressedOopsMode() string { return vm.heap.CompressedOopsMode() }

// BeginBatch makes the caches safe to use for the samples that follow: entries that were used
// recently are compared with the process in one read, and those that have changed are dropped. All
// others are compared when they are next used.
func (vm *VM) BeginBatch() {
	vm.Batch++
	vm.Mem.Renew()
	// Code is compared after the methods that it refers to.
	vm.beginMethods()
	vm.beginCode()
}

// Learned returns how many pieces of code and methods have been read so far. It grows for as long
// as the VM is seen to run new code.
func (vm *VM) Learned() int { return len(vm.code.blobs) + len(vm.methods.all) }
