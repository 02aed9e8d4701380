package target

import (
	"slices"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/winsys"
)

// handleAccess reads a process's memory through a handle.
type handleAccess struct {
	h     windows.Handle // not owned; 0 when it is closed
	let   bool           // the process has ended
	order []int
	buf   []byte
}

func (a *handleAccess) close() { a.h = 0 }

func (a *handleAccess) released() bool { return a.let || a.h == 0 }

func (a *handleAccess) gone() bool { return a.h != 0 && hasEnded(a.h) }

const (
	// together is how much memory is read at once for requests that lie near each other, in bytes: a
	// call costs more than copying that much.
	together = 64 << 10
	// apart is how far from each other such requests may lie.
	apart = pageSize
)

// readV fills the requests. The system reads one range at a time, and nothing of a range of which a
// part is not there, so that ranges that were put together may have to be read one by one.
func (a *handleAccess) readV(reqs []Read) {
	if len(reqs) == 1 {
		reqs[0].OK = a.read(reqs[0].Addr, reqs[0].Buf)
		return
	}
	a.order = a.order[:0]
	for i := range reqs {
		if reqs[i].OK = len(reqs[i].Buf) == 0; !reqs[i].OK {
			a.order = append(a.order, i)
		}
	}
	slices.SortFunc(a.order, func(i, j int) int {
		if reqs[i].Addr < reqs[j].Addr {
			return -1
		}
		return 1
	})
	for at := 0; at < len(a.order); {
		first := &reqs[a.order[at]]
		end, n := first.Addr+uint64(len(first.Buf)), at+1
		for ; n < len(a.order); n++ {
			r := &reqs[a.order[n]]
			to := r.Addr + uint64(len(r.Buf))
			if r.Addr > end+apart || to < r.Addr || max(end, to)-first.Addr > together {
				break
			}
			end = max(end, to)
		}
		a.readGroup(reqs, a.order[at:n], first.Addr, end)
		at = n
	}
}

// readGroup fills requests that lie within [from, end).
func (a *handleAccess) readGroup(reqs []Read, group []int, from, end uint64) {
	if len(group) > 1 && end-from <= together {
		if a.buf == nil {
			a.buf = make([]byte, together)
		}
		if b := a.buf[:end-from]; a.read(from, b) {
			for _, i := range group {
				copy(reqs[i].Buf, b[reqs[i].Addr-from:])
				reqs[i].OK = true
			}
			return
		}
	}
	for _, i := range group {
		reqs[i].OK = a.read(reqs[i].Addr, reqs[i].Buf)
	}
}

func (a *handleAccess) read(addr uint64, p []byte) bool {
	return a.h != 0 && (len(p) == 0 || addr != 0 && winsys.ReadMemory(a.h, addr, p))
}
