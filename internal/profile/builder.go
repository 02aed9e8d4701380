package profile

import "github.com/candid-profiler/candid/internal/walk"

// Builder makes a Profile sample by sample, deduplicating as it goes. Strings,
// functions, frames and stacks that are handed to it twice are stored once.
type Builder struct {
	p      *Profile
	funcs  map[Func]uint32
	frames map[Frame]uint32
	nodes  map[Node]uint32
	thread map[[2]int]uint32
}

// NewBuilder starts an empty profile.
func NewBuilder() *Builder {
	return &Builder{
		p:      &Profile{Nodes: make([]Node, 1)},
		funcs:  make(map[Func]uint32),
		frames: make(map[Frame]uint32),
		nodes:  make(map[Node]uint32),
		thread: make(map[[2]int]uint32),
	}
}

// Profile gives the profile built so far. It belongs to the Builder until the
// caller stops adding to it.
func (b *Builder) Profile() *Profile { return b.p }

// Func gives the index of f in Funcs.
func (b *Builder) Func(f Func) uint32 {
	i, ok := b.funcs[f]
	if !ok {
		i = uint32(len(b.p.Funcs))
		b.p.Funcs = append(b.p.Funcs, f)
		b.funcs[f] = i
	}
	return i
}

// Frame gives the index of f in Frames.
func (b *Builder) Frame(f Frame) uint32 {
	i, ok := b.frames[f]
	if !ok {
		i = uint32(len(b.p.Frames))
		b.p.Frames = append(b.p.Frames, f)
		b.frames[f] = i
	}
	return i
}

// Node gives the index of the stack that is parent's with frame called from it.
func (b *Builder) Node(parent, frame uint32) uint32 {
	n := Node{parent, frame}
	i, ok := b.nodes[n]
	if !ok {
		i = uint32(len(b.p.Nodes))
		b.p.Nodes = append(b.p.Nodes, n)
		b.nodes[n] = i
	}
	return i
}

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

// NewThread adds a thread even if one with these numbers is known: the kernel
// has given a dead thread's number to another.
func (b *Builder) NewThread(pid, tid int, name string) uint32 {
	delete(b.thread, [2]int{pid, tid})
	return b.Thread(pid, tid, name)
}

// Add appends a sample.
func (b *Builder) Add(s Sample) { b.p.Samples = append(b.p.Samples, s) }

// Quality counts how certain the stacks of a profile are. Every sample is in
// exactly one of Complete, Stitched, Heuristic, Truncated and Broken.
type Quality struct {
	Samples   uint64
	Complete  uint64 // reach the thread's first frame, nothing guessed, all from the copy
	Stitched  uint64 // complete, but part was read after the sample was taken
	Heuristic uint64 // complete, but at least one frame is a guess
	Truncated uint64
	Broken    uint64
	Reasons   [walk.NumEnds]uint64 // of the truncated and broken ones
}

// Quality counts over all samples.
func (p *Profile) Quality() Quality {
	var q Quality
	for i := range p.Samples {
		s := &p.Samples[i]
		q.Samples++
		switch {
		case s.End == walk.EndTruncated:
			q.Truncated++
			q.Reasons[s.End]++
		case s.End != walk.EndComplete && s.End < walk.NumEnds:
			q.Broken++
			q.Reasons[s.End]++
		case s.Flags&Guessed != 0:
			q.Heuristic++
		case s.Flags&Stitched != 0:
			q.Stitched++
		default:
			q.Complete++
		}
	}
	return q
}
