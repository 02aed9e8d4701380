package hotspot

import (
	"errors"
	"fmt"
	"sort"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/target"
)

// VM is a Java VM in another process, as read so far. It is used from one goroutine.
type VM struct {
	// Clock is the clock of walk.Cursor.Time, nil if there is none to compare with.
	Clock func() uint64

	peek peek   // the process itself
	file string // of the VM's library

	t     *tables
	arch  cpu.Arch
	major int // of the JDK: 8 to 27
	full  string
	off   offsets

	callStubReturn       uint64 // where the call stub continues after Java code returns; 0 if unknown
	interpLo, interpHi   uint64 // the template interpreter
	interpWords          interpreterWords
	continuationReturnPC uint64 // ContinuationEntry::_return_pc; 0 if unknown

	batch uint32 // number of BeginBatch calls
	died  uint64 // how many cached blobs and methods were found replaced

	code    codeCache
	methods methodTable
	names   resolver
	threads threadTable
	flags   *flagTable
	heap    heapLayout
	conts   continuations

	archive archive
	process *target.Process // nil if only a memory image is read

	safepoint      safepointVars
	safepointTried bool
	safepointErr   error

	notes map[string]bool

	stepping stepping // state of the rules for stepping over frames
}

// Open finds the Java VM in p and reads its tables. The error wraps
// ErrNotHotSpot if there is none and ErrNotReady if it is still starting.
// p stays the caller's and must outlive the VM.
func Open(p *target.Process) (*VM, error) { return openIn(p, nil) }

// openIn is Open, sharing what is known of files; known may be nil.
func openIn(p *target.Process, known *Finder) (*VM, error) {
	symbols, file, maps, err := findVM(p, known)
	if err != nil {
		return nil, fmt.Errorf("open the Java VM of process %d: %w", p.PID, err)
	}
	vm, err := open(p.Memory(), symbols, known)
	if errors.Is(err, ErrNotHotSpot) {
		// While a library is being loaded, its code lies for a moment where its data will be.
		if _, table := readTables(p.Memory(), symbols); table != nil {
			err = fmt.Errorf("its tables are not in place: %v: %w", table, ErrNotReady)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the Java VM of process %d (%s): %w", p.PID, file, err)
	}
	vm.file, vm.process = file, p
	vm.threads.tids = newTIDMap(p, file)
	if vm.arch == cpu.AMD64 { // the form of the archive's code elsewhere is not known
		vm.archive = archiveIn(maps)
	}
	return vm, nil
}

// OpenReader reads the VM's tables from a memory image; symbols holds the
// addresses of the exported gHotSpotVM* variables.
func OpenReader(r target.Reader, symbols map[string]uint64) (*VM, error) {
	return open(r, symbols, nil)
}

// open shares with the other VMs of known, which may be nil, what they have in common.
func open(r target.Reader, symbols map[string]uint64, known *Finder) (*VM, error) {
	t, err := readTables(r, symbols)
	if err != nil {
		return nil, err
	}
	t.published = known.published(t.published)
	vm := &VM{peek: peek{r: r}, t: t, arch: cpu.Host(), notes: make(map[string]bool)}
	vm.off = newOffsets(t, vm.arch, vm.missing)
	if err := vm.readVersion(); err != nil {
		return nil, err
	}
	flags, _, err := vm.readFlags()
	if err != nil {
		return nil, err
	}
	vm.flags = known.flags(flags)
	vm.code.standing = known.standing()
	if err := vm.openCode(); err != nil {
		return nil, err
	}
	vm.openMethods()
	vm.openNames()
	vm.openThreads()
	vm.openHeap()
	return vm, nil
}

// note stores a sentence about something that does not work with this VM.
func (vm *VM) note(s string) {
	if len(vm.notes) < 64 {
		vm.notes[s] = true
	}
}

func (vm *VM) missing(field, feature string) {
	vm.note(fmt.Sprintf("the VM does not publish %s: no %s", field, feature))
}

// Notes returns what does not work with this VM, and why, one sentence each.
func (vm *VM) Notes() []string {
	out := make([]string, 0, len(vm.notes))
	for s := range vm.notes {
		out = append(out, s)
	}
	sort.Strings(out)
	return out
}

// readVersion finds the JDK's version. Up to 21 JDK_Version holds it; there
// Abstract_VM_Version may be HotSpot's own number (25 in JDK 8).
func (vm *VM) readVersion() error {
	if f := vm.t.field("JDK_Version::_current"); f.ok {
		w, ok := vm.peek.u32(f.addr)
		if !ok {
			return errors.New("read the JDK's version: memory cannot be read")
		}
		vm.major = int(w & 0xff)
	} else if f := vm.t.field("Abstract_VM_Version::_vm_major_version"); f.ok {
		v, _ := vm.peek.static(f)
		vm.major = int(v)
	}
	if vm.major == 0 {
		return fmt.Errorf("the JDK's version is not filled in: %w", ErrNotReady)
	}
	if vm.major < 8 || vm.major > 99 {
		return fmt.Errorf("JDK %d is not supported, 8 and later are: %w", vm.major, ErrNotHotSpot)
	}
	// Release strings look like 25.512-b08, 17.0.15+6-Debian-1 or 25.0.3+9-LTS.
	if p, ok := vm.peek.static(vm.t.field("Abstract_VM_Version::_s_vm_release")); ok {
		vm.full, _ = vm.peek.cstring(p, maxTableString)
	}
	return nil
}

// Major returns the JDK's feature release: 8, 11, 17 …
func (vm *VM) Major() int { return vm.major }

// Version returns the JDK's version as users write it: "17.0.15". For JDK 8 only the update is
// known: "8.0.512".
func (vm *VM) Version() string {
	s := vm.full
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && c != '.' {
			s = s[:i]
			break
		}
	}
	if vm.major == 8 {
		// HotSpot numbered itself 25.x for JDK 8 update x.
		if len(s) > 3 && s[:3] == "25." {
			return "8.0." + s[3:]
		}
		return "8"
	}
	if s == "" {
		return fmt.Sprint(vm.major)
	}
	return s
}

// Release returns the VM's own release string: "17.0.15+6-Debian-1".
func (vm *VM) Release() string { return vm.full }

// File returns the path of the VM's library in the target.
func (vm *VM) File() string { return vm.file }

// BeginBatch makes the caches safe to use for the samples that follow: entries that were used
// recently are compared with the process in one read, and those that have changed are dropped. All
// others are compared when they are next used.
func (vm *VM) BeginBatch() {
	vm.batch++
	vm.peek.renew()
	// Code is compared after the methods that it refers to.
	vm.beginMethods()
	vm.beginCode()
}

// Learned returns how many pieces of code and methods have been read so far. It grows for as long
// as the VM is seen to run new code.
func (vm *VM) Learned() int { return len(vm.code.blobs) + len(vm.methods.all) }
