package target

import (
	"errors"
	"time"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/winsys"
)

// regionReader reads a process's regions on a goroutine of its own. Wine asks a thread of the process
// for each region, and waits until that thread gets a CPU: all of them may take seconds.
type regionReader struct {
	busy    chan struct{} // closed when what is being read is there; nil: nothing is
	last    []region
	version int           // of last
	took    time.Duration // to read it
	again   time.Time     // last is good until then
}

// region is a committed region, and the path of the file that is mapped there.
type region struct {
	info windows.MemoryBasicInformation
	path string
}

const (
	// regionWait is how long a caller waits for regions to be read: Windows takes 1 µs for each.
	regionWait = 30 * time.Millisecond
	// regionRest is how many times the time that reading took passes before they are read again.
	regionRest = 4
	// silence is how long a process is not asked again that did not answer.
	silence = 10 * time.Second
)

// regions returns the process's regions by address, as they were when they were last read, and a
// number that is another one when they have been read again.
func (p *Process) regions(h windows.Handle) (all []region, version int) {
	p.sys.mu.Lock()
	r := &p.sys.regionReader
	if r.busy == nil && !time.Now().Before(r.again) {
		var own windows.Handle
		me := windows.CurrentProcess()
		if windows.DuplicateHandle(me, h, me, &own, 0, false, windows.DUPLICATE_SAME_ACCESS) == nil {
			r.busy = make(chan struct{})
			go p.readRegions(own, r.busy)
		}
	}
	busy, slow := r.busy, r.took > regionWait
	p.sys.mu.Unlock()
	if busy != nil && !slow {
		patience := time.NewTimer(regionWait)
		defer patience.Stop()
		select {
		case <-busy:
		case <-patience.C:
		}
	}
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	return r.last, r.version
}

// readRegions reads the regions through a handle that it closes.
func (p *Process) readRegions(h windows.Handle, done chan struct{}) {
	defer windows.CloseHandle(h)
	begin := time.Now()
	found, err := winsys.Regions(h, maxMappings, p.behindImage)
	all, paths := make([]region, len(found)), map[uintptr]string{}
	for i, info := range found {
		all[i].info = info
		if info.Type == memPrivate {
			continue
		}
		path, known := paths[info.AllocationBase]
		if !known {
			path = winsys.MappedFile(h, uint64(info.AllocationBase))
			paths[info.AllocationBase] = path
		}
		all[i].path = path
	}
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	r := &p.sys.regionReader
	r.busy, r.took = nil, time.Since(begin)
	r.again = time.Now().Add(regionRest * r.took)
	if errors.Is(err, winsys.ErrNoAnswer) {
		r.again = time.Now().Add(silence)
	}
	if err == nil || len(r.last) == 0 {
		r.last = all
		r.version++
	}
	close(done)
}

// behindImage returns where an image ends that begins with a region, if it is known: its headers
// tell the rest.
func (p *Process) behindImage(info windows.MemoryBasicInformation) uint64 {
	if info.Type != memImage || info.BaseAddress != info.AllocationBase {
		return 0
	}
	if base, im := p.imageOf(uint64(info.BaseAddress)); im != nil && base == uint64(info.BaseAddress) {
		return base + im.size
	}
	return 0
}
