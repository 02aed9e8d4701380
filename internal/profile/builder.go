package profile

import (
	"math"
	"runtime"
	"unsafe"

	"github.com/candid-profiler/candid/internal/memlimit"
)

// Builder makes a Profile sample by sample, deduplicating as it goes. Strings, functions, frames
// and stacks that are added twice are stored once.
type Builder struct {
	p      *Profile
	funcs  index[Func]
	frames index[Frame]
	nodes  *Trie
	slept  sampleLog // of SumUp: samples added before log
	log    sampleLog
	sums   sums
	gone   int // observations that SumUp dropped
	given  int // how many samples log had when Profile last copied it
	thread map[[2]int]uint32
	named  map[namedThread]uint32
	calls  map[string]uint16
	// labeled maps labels and a system call to their index; labelKey is a buffer for its keys.
	labeled  map[string]uint16
	labelKey []byte

	early *early // leaves samples out; nil: none

	// For samples that are not in Samples: see Keep.
	keep      Keep
	room      *room
	tentative bool
	timed     bool
	latest    uint64
	tally     tally
	summed    []sum // of AddSum: not yet in tally
	tracks    map[Track]*sampleLog
	logs      []*sampleLog // of tracks, in the order of their first samples
	track     *sampleLog   // the latest one, of trackOf; nil: none
	trackOf   Track

	// Functions, frames and nodes may be added by one goroutine while another adds samples and
	// threads.
	meter        *memlimit.Meter
	shape, taken memlimit.Gate
}

// Limit sets, before anything is added, what watches the memory that the profile takes. When it
// takes too much, Err says so and nothing more is added: what is added then is what was there first.
func (b *Builder) Limit(m *memlimit.Meter) {
	b.meter, b.shape, b.taken = m, m.Gate(), m.Gate()
}

// Meter returns what Limit set; nil: nothing.
func (b *Builder) Meter() *memlimit.Meter { return b.meter }

// Room returns how many more samples a reader may make of the counts in a file. It depends on the
// file and on Keep only.
func (b *Builder) Room() int {
	if b.keep >= KeepSums || b.room != nil && b.keep != KeepSamples {
		return math.MaxInt
	}
	// At the end each sample is there packed and unpacked, and half of the memory is for others.
	const each = 2 * int64(unsafe.Sizeof(Sample{})+maxLogged/2)
	return int(b.meter.Allowance()/each) - b.Samples()
}

// Err returns the error if the profile takes too much memory.
func (b *Builder) Err() error { return b.meter.Err() }

// NewBuilder returns a Builder of an empty profile.
func NewBuilder() *Builder {
	return &Builder{
		p:      &Profile{Nodes: make([]Node, 1)},
		nodes:  NewTrie(),
		thread: make(map[[2]int]uint32),
	}
}

// Profile returns the profile built so far, always the same one. It belongs to the Builder until
// the caller stops adding to it. Its Nodes and Samples are those that were added before the latest
// call of Profile: each call that finds new ones copies all of them, so it is too slow to call for
// every sample.
func (b *Builder) Profile() *Profile {
	if len(b.p.Nodes) != int(b.nodes.n) {
		b.p.Nodes = b.nodes.flat()
	}
	if b.given != b.log.n {
		b.p.Samples, b.given = flat(&b.slept, &b.log), b.log.n
	}
	b.p.sums = b.sums
	return b.p
}

// Finish returns the profile and frees what only adding to it needs: nothing may be added
// afterwards, and only the profile may be used.
func (b *Builder) Finish() *Profile {
	b.funcs, b.frames, b.thread, b.named = index[Func]{}, index[Frame]{}, nil, nil
	b.nodes.Seal()
	// The memory that is freed is as large as the profile. It is freed before the profile is put
	// together, one part at a time, so that no part exists twice while all of the others are in
	// memory. A collection waits for CPUs, which is not worth it for a small profile.
	if len(b.p.Frames) > 1<<12 || b.nodes.n > 1<<16 {
		runtime.GC()
	}
	b.p.Nodes = b.nodes.flat()
	b.nodes = &Trie{n: b.nodes.n}
	if len(b.p.Nodes) > 1<<18 {
		runtime.GC()
	}
	if n := b.slept.n + b.log.n; b.keep == KeepSamples && b.meter.Room(n*int(unsafe.Sizeof(Sample{}))) != nil {
		return b.p
	}
	if b.keep != KeepSamples {
		b.finish()
		return b.p
	}
	b.p.Samples, b.p.sums = flat(&b.slept, &b.log), b.sums
	b.slept, b.log = sampleLog{n: b.slept.n}, sampleLog{n: b.log.n}
	return b.p
}

// Samples returns how many samples were added.
func (b *Builder) Samples() int {
	n := b.Unsummed() + b.slept.n + int(b.sums.samples) + int(b.tally.added)
	for _, l := range b.logs {
		n += l.n
	}
	return n
}

// Single returns how many of the added samples are kept one by one, not only in sums.
func (b *Builder) Single() int { return b.Samples() - int(b.sums.samples) - int(b.tally.added) }

// Unsummed returns how many samples were added since SumUp.
func (b *Builder) Unsummed() int { return b.log.n }

// Syscall returns the index of a system call's name in Syscalls; 0 for "", and if there are more
// names than any system has.
func (b *Builder) Syscall(name string) uint16 {
	if name == "" {
		return 0
	}
	i, ok := b.calls[name]
	if !ok {
		if len(b.calls) >= maxSyscalls || len(b.p.Syscalls) >= maxCircumstances {
			return 0
		}
		if b.calls == nil {
			b.calls = make(map[string]uint16)
		}
		i = b.circumstance(PlainText(name))
		b.calls[name] = i
	}
	return i
}

// circumstance appends to Syscalls, and returns the index.
func (b *Builder) circumstance(call string) uint16 {
	if len(b.p.Syscalls) == 0 {
		b.p.Syscalls = []string{""}
	}
	b.p.Syscalls = append(b.p.Syscalls, call)
	return uint16(len(b.p.Syscalls) - 1)
}

// Func returns the index of f in Funcs.
func (b *Builder) Func(f Func) uint32 { return b.funcs.place(&b.p.Funcs, f.plain(), b.meter) }

// Frame returns the index of f in Frames.
func (b *Builder) Frame(f Frame) uint32 { return b.frames.place(&b.p.Frames, f, b.meter) }

// Node returns the index of the stack that is parent's with frame called from it. It does not
// allocate for a stack that is known. There are at most 2^32-1.
func (b *Builder) Node(parent, frame uint32) uint32 {
	if b.shape.Pass() != nil {
		return RootNode
	}
	return b.nodes.Child(parent, frame)
}

// Thread returns the index of a thread in Threads, and adds it with name if it is new.
func (b *Builder) Thread(pid, tid int, name string) uint32 {
	k := [2]int{pid, tid}
	i, ok := b.thread[k]
	if !ok {
		if b.taken.Pass() != nil && len(b.p.Threads) > 0 {
			return 0
		}
		i, name = uint32(len(b.p.Threads)), PlainText(name)
		b.p.Threads = append(b.p.Threads, Thread{PID: pid, TID: tid, Name: name, OSName: name})
		b.thread[k] = i
	}
	return i
}

type namedThread struct {
	pid, tid int
	name     string
}

// NamedThread is Thread for sources that give for each sample the final name of its thread: of two
// names with the same numbers, one thread had ended before the other started.
func (b *Builder) NamedThread(pid, tid int, name string) uint32 {
	k := namedThread{pid, tid, name}
	i, ok := b.named[k]
	if !ok {
		if b.named == nil {
			b.named = make(map[namedThread]uint32)
		}
		i = b.NewThread(pid, tid, name)
		b.named[k] = i
	}
	return i
}

// NewThread adds a thread even if one with these numbers is known: the kernel has reused a dead
// thread's number.
func (b *Builder) NewThread(pid, tid int, name string) uint32 {
	delete(b.thread, [2]int{pid, tid})
	return b.Thread(pid, tid, name)
}

// Add appends a sample, unless LeaveOut excludes it.
func (b *Builder) Add(s Sample) {
	switch {
	case b.taken.Pass() != nil:
	case b.early != nil && !b.early.takes(b, &s):
	case b.keep == KeepSamples:
		b.log.add(s)
	default:
		b.put(s)
	}
}

// Nodes returns how many nodes the trie has, with the root.
func (b *Builder) Nodes() int { return b.nodes.Len() }
