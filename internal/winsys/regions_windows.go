package winsys

import (
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// ErrNoAnswer says that a process did not answer in time.
var ErrNoAnswer = errors.New("it does not answer")

// Wine asks a thread of the process, and waits for ever if that ends meanwhile.
const regionPatience = 5 * time.Second

// Regions returns the committed regions of a process by address, at most that many. behind, which is
// called from another goroutine, returns how far the caller knows what follows the start of a region,
// as an address; 0 if it does not. The error wraps ErrNoAnswer if a call did not return; what was
// found until then is returned too.
func Regions(process windows.Handle, most int, behind func(windows.MemoryBasicInformation) uint64) ([]windows.MemoryBasicInformation, error) {
	// The goroutine has a handle of its own, because it may outlive this call.
	var own windows.Handle
	me := windows.CurrentProcess()
	if err := windows.DuplicateHandle(me, process, me, &own, 0, false, windows.DUPLICATE_SAME_ACCESS); err != nil {
		return nil, err
	}
	found := make(chan windows.MemoryBasicInformation, 64)
	var given atomic.Bool
	go func() {
		defer windows.CloseHandle(own)
		defer close(found)
		var info windows.MemoryBasicInformation
		for at := uintptr(0); !given.Load(); {
			if windows.VirtualQueryEx(own, at, &info, unsafe.Sizeof(info)) != nil {
				return
			}
			end := info.BaseAddress + info.RegionSize
			if end <= at {
				return
			}
			at = end
			if info.State == windows.MEM_COMMIT {
				at = max(at, uintptr(behind(info)))
				select {
				case found <- info:
				case <-time.After(regionPatience):
					return // nobody takes it any more
				}
			}
		}
	}()
	defer given.Store(true)
	var out []windows.MemoryBasicInformation
	patience := time.NewTimer(regionPatience)
	defer patience.Stop()
	for len(out) < most {
		select {
		case info, ok := <-found:
			if !ok {
				return out, nil
			}
			out = append(out, info)
			patience.Reset(regionPatience)
		case <-patience.C:
			if ev, err := windows.WaitForSingleObject(process, 0); err == nil && ev == windows.WAIT_OBJECT_0 {
				return out, windows.ERROR_INVALID_HANDLE // it has ended
			}
			return out, ErrNoAnswer
		}
	}
	return out, nil
}

// RegionAt returns the committed region that an address lies in.
func RegionAt(process windows.Handle, addr uint64) (info windows.MemoryBasicInformation, ok bool) {
	type answer struct {
		info windows.MemoryBasicInformation
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		var a answer
		a.err = windows.VirtualQueryEx(process, uintptr(addr), &a.info, unsafe.Sizeof(a.info))
		got <- a
	}()
	select {
	case a := <-got:
		return a.info, a.err == nil && a.info.State == windows.MEM_COMMIT
	case <-time.After(regionPatience):
		return info, false
	}
}
