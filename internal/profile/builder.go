package profile

import "runtime"

// Builder makes a Profile sample by sample, deduplicating as it goes. Strings,
// functions, frames and stacks that are handed to it twice are stored once.
type Builder struct {
	p      *Profile
	funcs  index[Func]
	frames index[Frame]
	nodes  *Trie
	slept  sampleLog // of SumUp: what came before log
	log    sampleLog
	sums   sums
	gone   int // observations that SumUp let go of
	given  int // how many samples log had when Profile made its own
	thread map[[2]int]uint32
	named  map[namedThread]uint32
	calls  map[string]uint16
	early  *early // leaves samples out; nil: none

	// Of what is not in Samples: see Keep.
	keep      Keep
	room      *room
	tentative bool
	timed     bool
	latest    uint64
	tally     tally
	summed    []sum // of AddSum: what tally lacks
	tracks    map[Track]*sampleLog
	logs      []*sampleLog // of tracks, in the order of their first samples
	track     *sampleLog   // the last one, of trackOf; nil: none
	trackOf   Track
}

// NewBuilder starts an empty profile.
func NewBuilder() *Builder {
	return &Builder{
		p:      &Profile{Nodes: make([]Node, 1)},
		nodes:  NewTrie(),
		thread: make(map[[2]int]uint32),
	}
}

// Profile gives the profile built so far, always the same one. It belongs to
// the Builder until the caller stops adding to it. Its Nodes and Samples are
// those that were added before the latest call of Profile: each call that finds
// new ones copies all of them, so it is not for every sample.
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

// Finish gives the profile and lets go of what only adding to it needs: nothing
// may be added afterwards, and of the Builder only the profile may be asked for.
func (b *Builder) Finish() *Profile {
	b.funcs, b.frames, b.thread, b.named = index[Func]{}, index[Frame]{}, nil, nil
	b.nodes.Seal()
	// What is let go of is as large as the profile: it is freed before the profile
	// is put together, a part at a time, so that no part is there twice beside all
	// of the others. Collecting waits for CPUs, which a small one is not worth.
	if len(b.p.Frames) > 1<<12 || b.nodes.n > 1<<16 {
		runtime.GC()
	}
	b.p.Nodes = b.nodes.flat()
	b.nodes = &Trie{n: b.nodes.n}
	if len(b.p.Nodes) > 1<<18 {
		runtime.GC()
	}
	if b.keep != KeepSamples {
		b.finish()
		return b.p
	}
	b.p.Samples, b.p.sums = flat(&b.slept, &b.log), b.sums
	b.slept, b.log = sampleLog{n: b.slept.n}, sampleLog{n: b.log.n}
	return b.p
}

// Samples gives how many samples were added.
func (b *Builder) Samples() int {
	n := b.Unsummed() + b.slept.n + int(b.sums.samples) + int(b.tally.added)
	for _, l := range b.logs {
		n += l.n
	}
	return n
}

// Single gives how many samples were added that are kept one by one: what sums have is not
// among them.
func (b *Builder) Single() int { return b.Samples() - int(b.sums.samples) - int(b.tally.added) }

// Unsummed gives how many samples were added since SumUp.
func (b *Builder) Unsummed() int { return b.log.n }

// Syscall gives the index of a system call's name in Syscalls; 0 for "", and
// where there are more than any system has.
func (b *Builder) Syscall(name string) uint16 {
	if name == "" {
		return 0
	}
	i, ok := b.calls[name]
	if !ok {
		const most = 4096
		if len(b.calls) >= most {
			return 0
		}
		if b.calls == nil {
			b.calls = make(map[string]uint16)
			b.p.Syscalls = []string{""}
		}
		i = uint16(len(b.p.Syscalls))
		b.p.Syscalls = append(b.p.Syscalls, name)
		b.calls[name] = i
	}
	return i
}

// Func gives the index of f in Funcs.
func (b *Builder) Func(f Func) uint32 { return b.funcs.place(&b.p.Funcs, f) }

// Frame gives the index of f in Frames.
func (b *Builder) Frame(f Frame) uint32 { return b.frames.place(&b.p.Frames, f) }

// Node gives the index of the stack that is parent's with frame called from it.
// It does not allocate for a stack that is known. There are at most 2^32-1.
func (b *Builder) Node(parent, frame uint32) uint32 { return b.nodes.Child(parent, frame) }

// Thread gives the index of a thread in Threads, adding it with name if new.
func (b *Builder) Thread(pid, tid int, name string) uint32 {
	k := [2]int{pid, tid}
	i, ok := b.thread[k]
	if !ok {
		i = uint32(len(b.p.Threads))
		b.p.Threads = append(b.p.Threads, Thread{PID: pid, TID: tid, Name: name, OSName: name})
		b.thread[k] = i
	}
	return i
}

type namedThread struct {
	pid, tid int
	name     string
}

// NamedThread is Thread for what says of each sample the name that its thread ends
// with: of two names with the same numbers one had died before the other was born.
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

// NewThread adds a thread even if one with these numbers is known: the kernel
// has given a dead thread's number to another.
func (b *Builder) NewThread(pid, tid int, name string) uint32 {
	delete(b.thread, [2]int{pid, tid})
	return b.Thread(pid, tid, name)
}

// Add appends a sample, unless LeaveOut leaves it out.
func (b *Builder) Add(s Sample) {
	switch {
	case b.early != nil && !b.early.takes(b, &s):
	case b.keep == KeepSamples:
		b.log.add(s)
	default:
		b.put(s)
	}
}

// Nodes gives how many nodes the trie has, with the root.
func (b *Builder) Nodes() int { return b.nodes.Len() }
