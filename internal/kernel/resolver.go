package kernel

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// Resolver names kernel frames (walk.KindKernel). It reads the kernel's symbols
// when the first frame asks for them, and again, seldom, when a frame lies in
// code that came later: a module, a BPF program. It may be used from several
// goroutines.
type Resolver struct {
	load func() (*Symbols, error)
	now  func() time.Time

	mu     sync.Mutex
	syms   *Symbols
	err    error
	loaded time.Time
	loads  int
	names  map[int]names // of syms
}

type names struct{ function, raw string }

const (
	reloadAfter = 10 * time.Second // reading takes about 0.1 s of CPU time
	maxLoads    = 20
)

// NewResolver makes a Resolver for the running kernel. It reads nothing yet.
func NewResolver() *Resolver { return &Resolver{load: Load, now: time.Now} }

var _ symbol.Resolver = (*Resolver)(nil)

// Err says why kernel frames have no names: it wraps ErrRestricted or
// ErrUnsupported. It is nil if they have, and before the first frame.
func (r *Resolver) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Resolve appends the one function that f stands for. Without a symbol its name
// is module+offset.
func (r *Resolver) Resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	fr := symbol.Frame{Module: image, BCI: -1, Kind: f.Kind, Flags: f.Flags, Addr: f.PC}
	pc := f.PC
	if f.Flags&walk.ReturnAddress != 0 && pc > 0 {
		pc-- // the call lies before it, and may be the last thing its function does
	}
	if name, ok := vsyscall(pc); ok {
		fr.Function, fr.Module = name, "[vsyscall]"
		return append(out, fr)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.find(pc)
	if i < 0 {
		fr.Function, fr.NoName = fmt.Sprintf("%s+%#x", image, f.PC), true
		return append(out, fr)
	}
	n, ok := r.names[i]
	if !ok {
		raw := r.syms.name(i)
		n.function = normal(raw)
		if n.function != raw {
			n.raw = raw
		}
		r.names[i] = n
	}
	fr.Function, fr.Raw, fr.Module = n.function, n.raw, r.syms.modules[r.syms.module[i]]
	return append(out, fr)
}

// find looks pc up, reading the symbols if that may help. The lock is held.
func (r *Resolver) find(pc uint64) int {
	if r.syms != nil {
		if i := r.syms.find(pc); i >= 0 {
			return i
		}
	}
	if pc < 1<<63 { // no kernel address: reading again would not help
		return -1
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

// generated are the endings that compilers give to copies and parts of a
// function, which differ from build to build.
var generated = []string{".isra.", ".constprop.", ".part.", ".cold", ".llvm.", ".lto_priv."}

// normal cuts what a compiler or the kernel has added to a name.
func normal(name string) string {
	for _, g := range generated {
		if i := strings.Index(name, g); i > 0 {
			name = name[:i]
		}
	}
	if strings.HasPrefix(name, "bpf_trampoline_") { // then the number of the attach point
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
