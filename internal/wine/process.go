package wine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
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
	goes   goroutines
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
				p.follow = p.newWay()
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
