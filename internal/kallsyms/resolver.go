package kallsyms

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// Resolver names kernel frames (walk.KindKernel). It asks the kernel about each function at its
// first frame. If that is not possible, it reads the kernel's symbols at the first frame, and
// again, rarely, when a frame lies in code that was loaded later: a module, a BPF program. It may
// be used from several goroutines.
type Resolver struct {
	hide bool // addresses
	open func() (*asker, error)
	load func() (*Symbols, error)
	now  func() time.Time

	mu     sync.Mutex
	asking *asker
	opened bool
	known  []function // of the kernel's image, by address; their code does not change
	syms   *Symbols
	err    error
	loaded time.Time
	loads  int
	names  map[int]names // of syms

	switches map[uint64]bool // for BelowScheduler: whether an address is in the scheduler
	enables  map[uint64]bool // for MarkSkid: whether an address is in a function that only enables interrupts
}

type names struct{ function, raw string }

// function is one that was looked up.
type function struct {
	from, to uint64
	names
}

const (
	reloadAfter = 10 * time.Second // reading takes about 0.1 s of CPU time
	maxLoads    = 20
	maxKnown    = 1 << 16
)

// NewResolver returns a Resolver for the running kernel. It reads nothing yet. Close frees what it
// holds.
func NewResolver() *Resolver { return &Resolver{open: openAsker, load: Load, now: time.Now} }

var _ symbol.Resolver = (*Resolver)(nil)

// HideAddresses leaves addresses out of what frames are named: where the kernel shows them to
// privileged users only, whoever gets the names may not be one.
func (r *Resolver) HideAddresses() { r.hide = true }

// Err returns why kernel frames have no names: it wraps ErrRestricted or ErrUnsupported. It is nil
// if they have names, and before the first frame.
func (r *Resolver) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close frees the resources for asking the kernel. Frames that are named afterwards get the names
// of functions that are known already.
func (r *Resolver) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asking != nil {
		r.asking.close()
		r.asking, r.loads = nil, maxLoads
	}
}

// Resolve appends the one function that f stands for. Without a symbol, its name is module+offset.
func (r *Resolver) Resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	fr := symbol.Frame{Module: image, BCI: -1, Kind: f.Kind, Flags: f.Flags, Addr: f.PC}
	if r.hide {
		fr.Addr = 0
	}
	pc := f.PC
	if f.Flags&walk.ReturnAddress != 0 && pc > 0 {
		pc-- // the call lies before it, and may be the last instruction of its function
	}
	if name, ok := vsyscall(pc); ok {
		fr.Function, fr.Module = name, "[vsyscall]"
		return append(out, fr)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n, module, ok := r.lookup(pc)
	if !ok {
		fr.Function, fr.NoName = fmt.Sprintf("%s+%#x", image, f.PC), true
		if r.hide {
			fr.Function = image
		}
		return append(out, fr)
	}
	fr.Function, fr.Raw, fr.Module = n.function, n.raw, module
	return append(out, fr)
}

// Open prepares for asking the kernel, for a process that may not load BPF programs any more when the
// first frame comes.
func (r *Resolver) Open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin()
}

// begin is Open with the lock held.
func (r *Resolver) begin() {
	if r.opened || r.open == nil {
		return
	}
	r.opened = true
	asking, err := r.open()
	switch {
	case err == nil:
		r.asking = asking
	case errors.Is(err, ErrRestricted), errors.Is(err, ErrUnsupported):
		r.err = err
	}
}

// lookup names the function that pc lies in. The lock is held.
func (r *Resolver) lookup(pc uint64) (n names, module string, ok bool) {
	if pc < 1<<63 { // not a kernel address
		return names{}, "", false
	}
	r.begin()
	at, found := slices.BinarySearchFunc(r.known, pc, func(f function, pc uint64) int {
		switch {
		case f.to <= pc:
			return -1
		case f.from > pc:
			return 1
		}
		return 0
	})
	if found {
		return r.known[at].names, image, true
	}
	if r.asking != nil {
		a, ok := r.asking.ask(pc)
		if !ok {
			return names{}, "", false
		}
		n := namesOf(a.name)
		if a.module == image && len(r.known) < maxKnown {
			r.known = slices.Insert(r.known, at, function{a.from, a.to, n})
		}
		return n, a.module, true
	}
	i := r.find(pc)
	if i < 0 {
		return names{}, "", false
	}
	n, ok = r.names[i]
	if !ok {
		n = namesOf(r.syms.name(i))
		r.names[i] = n
	}
	return n, r.syms.modules[r.syms.module[i]], true
}

// namesOf returns a function's display name and, if that differs, the kernel's name.
func namesOf(raw string) names {
	n := names{function: normal(raw)}
	if n.function != raw {
		n.raw = raw
	}
	return n
}

// find looks pc up, reading the symbols if that may help. The lock is held.
func (r *Resolver) find(pc uint64) int {
	if r.syms != nil {
		if i := r.syms.find(pc); i >= 0 {
			return i
		}
	}
	if r.err != nil || r.loads >= maxLoads || r.loads > 0 && r.now().Sub(r.loaded) < reloadAfter {
		return -1
	}
	r.loads++
	r.loaded = r.now()
	syms, err := r.load()
	if err != nil {
		if r.syms == nil {
			r.err = err
		}
		return -1
	}
	r.syms, r.names = syms, make(map[int]names)
	return syms.find(pc)
}

// generated are the suffixes that compilers append to copies and parts of a function, which differ
// from build to build.
var generated = []string{".isra.", ".constprop.", ".part.", ".cold", ".llvm.", ".lto_priv."}

// normal removes what a compiler or the kernel has appended to a name.
func normal(name string) string {
	for _, g := range generated {
		if i := strings.Index(name, g); i > 0 {
			name = name[:i]
		}
	}
	if strings.HasPrefix(name, "bpf_trampoline_") { // followed by the number of the attach point
		return "bpf_trampoline"
	}
	return name
}

// vsyscall names the calls of the page that the x86-64 kernel keeps at a fixed
// address for very old programs (arch/x86/entry/vsyscall).
func vsyscall(pc uint64) (string, bool) {
	const base, size = 0xffffffffff600000, 0x1000
	if pc-base >= size {
		return "", false
	}
	switch (pc - base) / 0x400 {
	case 0:
		return "gettimeofday", true
	case 1:
		return "time", true
	case 2:
		return "getcpu", true
	}
	return "[vsyscall]", true
}
