package wine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/target"
)

// Errors of Open.
var (
	// ErrNotWine means that the process does not run in Wine.
	ErrNotWine = errors.New("no Wine")
	// ErrNotReady means that Wine has not set up its first thread.
	ErrNotReady = errors.New("Wine is still starting")
	// ErrUnknown means that this release of Wine keeps its threads' state in a way that is not known.
	ErrUnknown = errors.New("its Wine is not a known release")
)

// Process is a process that runs in Wine. It is used from one goroutine.
type Process struct {
	target *target.Process
	layout layout
	local  uint64 // offset from the C library's thread of its pointer to the thread block
	tid    uint64 // offset of its thread id
	follow *capture.Follow
	bases  map[uint32]uint64 // the C library's thread by thread id
	ids    map[uint32]uint32 // thread id by that of Windows
	read   time.Time         // when bases was read
}

// Library reports whether a mapping is of the library with which every process of Wine begins.
func Library(m target.Mapping) bool { return path.Base(m.Path) == "ntdll.so" && m.FileBacked() }

// Bounds of the search for thread blocks.
const (
	page        = 4096
	maxSearched = 64 << 20 // bytes of memory whose pages are looked at
	// Wine allocates thread blocks below 2 GB, so that 32-bit code could use them too
	// (dlls/ntdll/unix/virtual.c, virtual_alloc_teb).
	limit2GB  = 1 << 31
	maxBlocks = 1 << 14
	maxThread = 0x1000 // bytes of the C library's thread that are searched
)

// Open finds the threads of a process. The error wraps ErrNotWine, ErrNotReady or ErrUnknown.
func Open(t *target.Process) (*Process, error) {
	list, err := t.Mappings()
	if err != nil {
		return nil, err
	}
	found := false
	for _, m := range list {
		found = found || Library(m)
	}
	if !found {
		return nil, fmt.Errorf("process %d maps no ntdll.so: %w", t.PID, ErrNotWine)
	}
	p := &Process{target: t}
	blocks := p.blocks(list)
	if len(blocks) == 0 {
		return nil, fmt.Errorf("process %d has no thread block: %w", t.PID, ErrNotReady)
	}
	for _, l := range layouts {
		for _, b := range blocks {
			if p.layout = l; p.learn(b) {
				p.follow = p.way()
				return p, nil
			}
		}
	}
	return nil, fmt.Errorf("process %d: %w", t.PID, ErrUnknown)
}

// blocks returns the addresses of the thread blocks: pages that begin with a pointer to themselves at
// the place where all thread blocks have one.
func (p *Process) blocks(list []target.Mapping) (out []uint64) {
	left := uint64(maxSearched)
	const chunk = 64 * page
	buf := make([]byte, chunk)
	for _, m := range list {
		if n := m.End - m.Start; m.End <= limit2GB && m.Perm&(target.PermRead|target.PermWrite) == target.PermRead|target.PermWrite && m.Anonymous() && m.Path == "" && n <= left {
			left -= n
			for at := m.Start; at < m.End; at += chunk {
				b := buf[:min(chunk, m.End-at)]
				if p.target.Memory().ReadAt(b, at) != nil {
					continue
				}
				for off := 0; off+0x70 <= len(b) && len(out) < maxBlocks; off += page {
					if block := at + uint64(off); binary.LittleEndian.Uint64(b[off+tebSelf:]) == block && block != 0 {
						out = append(out, block)
					}
				}
			}
		}
	}
	return out
}

func (p *Process) word(addr uint64) uint64 {
	v, _ := p.target.Memory().Uint64(addr)
	return v
}

// learn finds where threads have their thread block, and checks that the frame of the thread's
// last system call is where the layout says.
func (p *Process) learn(teb uint64) bool {
	l := &p.layout
	base, limit := p.word(teb+tebStackBase), p.word(teb+tebStackLimit)
	frame, stack := p.word(teb+l.frame), p.word(teb+l.kernelStack)
	if base <= limit || frame < stack || frame-stack >= kernelStackSize || stack == 0 {
		return false
	}
	if sp := p.word(frame + l.rsp); sp <= limit || sp >= base {
		return false
	}
	thread := p.word(teb + l.pthread)
	b := make([]byte, maxThread)
	if thread == 0 || p.target.Memory().ReadAt(b, thread) != nil || binary.LittleEndian.Uint64(b) != thread {
		return false
	}
	tid, ok := p.threadID(b)
	if !ok {
		return false
	}
	for off := 0; off+8 <= len(b); off += 8 {
		if binary.LittleEndian.Uint64(b[off:]) == teb {
			p.local, p.tid = uint64(off), tid
			return true
		}
	}
	return false
}

// threadID finds the thread id in the C library's thread: a number that is one of the process's
// threads'. Its process id precedes it in some releases.
func (p *Process) threadID(b []byte) (uint64, bool) {
	list, err := p.target.TIDs()
	if err != nil {
		return 0, false
	}
	tids := map[uint32]bool{}
	for _, tid := range list {
		tids[tid] = true
	}
	// glibc since 2.34 has it at 0x2d0 (nptl/descr.h); the word is looked for around it.
	for off := 0x200; off < 0x400; off += 4 {
		if v := binary.LittleEndian.Uint32(b[off:]); v != 0 && tids[v] {
			return uint64(off), true
		}
	}
	return 0, false
}

// Follow describes to an engine how to find the Windows stack of a thread that runs Wine's own code.
func (p *Process) Follow() *capture.Follow { return p.follow }

// fixedCopy is copied of a Windows stack that is too large to be copied whole, in bytes.
const fixedCopy = 64 << 10

// way makes the description: if the stack pointer is not on the Windows stack, the part of that from
// where the last system call was made is copied. So is the frame while a dispatcher of system calls
// fills or leaves it: then rcx is its address, the stack pointer is above it or still on the Windows
// stack, and the return address is nowhere else.
func (p *Process) way() *capture.Follow {
	const (
		thread = iota
		teb
		self
		base
		limit
		sp
		room
		frame
		from
		size
	)
	const end = capture.StepsEnd
	var steps []capture.Step
	add := func(s capture.Step) int {
		steps = append(steps, s)
		return len(steps) - 1
	}
	load := func(dst, src uint8, off uint64) {
		add(capture.Step{Op: capture.OpLoad, Dst: dst, Src: src, Imm: off, No: end})
	}
	minus := func(dst, a, b uint8, more uint64) {
		add(capture.Step{Op: capture.OpAdd, Dst: dst, Src: a, Imm: more})
		add(capture.Step{Op: capture.OpLess, Dst: dst, Src: b})
	}
	add(capture.Step{Op: capture.OpThread, Dst: thread, No: end})
	load(teb, thread, p.local)
	load(self, teb, tebSelf)
	add(capture.Step{Op: capture.OpLess, Dst: self, Src: teb})
	check := add(capture.Step{Op: capture.OpNotZero, Dst: self})
	add(capture.Step{Op: capture.OpJump, No: end})
	steps[check].No = uint8(len(steps))
	load(frame, teb, p.layout.frame)
	filling := add(capture.Step{Op: capture.OpRegister, Dst: room, Arg: cpu.RCX})
	add(capture.Step{Op: capture.OpLess, Dst: room, Src: frame})
	is := add(capture.Step{Op: capture.OpNotZero, Dst: room})
	past := add(capture.Step{Op: capture.OpJump})
	steps[is].No = uint8(len(steps))
	refused := add(capture.Step{Op: capture.OpCopy, Dst: frame, Arg: p.layout.size})
	for _, i := range []int{filling, past, refused} {
		steps[i].No = uint8(len(steps))
	}
	load(base, teb, tebStackBase)
	load(limit, teb, tebStackLimit)
	unknown := add(capture.Step{Op: capture.OpRegister, Dst: sp, Arg: cpu.RSP})
	// A count fails for numbers that are 0 or negative.
	minus(room, base, sp, 0)
	above := add(capture.Step{Op: capture.OpCount, Dst: room})
	minus(room, sp, limit, 1)
	below := add(capture.Step{Op: capture.OpCount, Dst: room})
	add(capture.Step{Op: capture.OpJump, No: end})
	for _, i := range []int{unknown, above, below} {
		steps[i].No = uint8(len(steps))
	}
	load(from, frame, p.layout.rsp)
	minus(size, base, from, 0)
	large := add(capture.Step{Op: capture.OpCopy, Dst: from, Src: size})
	add(capture.Step{Op: capture.OpJump, No: end})
	steps[large].No = uint8(len(steps))
	add(capture.Step{Op: capture.OpCopy, Dst: from, Arg: fixedCopy, No: end})
	return &capture.Follow{Steps: steps}
}

// threadsAgain is how often the list of threads is read at most.
const threadsAgain = 50 * time.Millisecond

// ThreadPointer returns the address of a thread's own storage; false if it is not known.
func (p *Process) ThreadPointer(tid uint32) (uint64, bool) {
	base, ok := p.bases[tid]
	if ok && p.idOf(base) == tid {
		return base, true
	}
	if now := time.Now(); now.Sub(p.read) >= threadsAgain {
		p.read = now
		p.readThreads()
		base, ok = p.bases[tid]
	}
	return base, ok
}

// Threads returns the threads: their ids on this system by those that Windows programs know.
func (p *Process) Threads() map[uint32]uint32 {
	p.readThreads()
	return maps.Clone(p.ids)
}

func (p *Process) idOf(thread uint64) uint32 {
	v, _ := p.target.Memory().Uint32(thread + p.tid)
	return v
}

func (p *Process) readThreads() {
	p.bases, p.ids = map[uint32]uint64{}, map[uint32]uint32{}
	list, err := p.target.Mappings()
	if err != nil {
		return
	}
	for _, teb := range p.blocks(list) {
		if thread := p.word(teb + p.layout.pthread); thread != 0 && p.word(thread+p.local) == teb {
			id := p.idOf(thread)
			p.bases[id] = thread
			p.ids[uint32(p.word(teb+tebThreadID))] = id
		}
	}
}
