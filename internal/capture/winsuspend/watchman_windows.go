package winsuspend

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/capture/winsuspend/guard"
)

// watchman is the guard as candid sees it: the page that both share, and the process.
type watchman struct {
	mapping windows.Handle
	page    *guard.Page
	self    windows.Handle // candid, for the guard
	process windows.Handle // 0: none was started, or thread state change objects are used
	pid     int
}

// newWatchman makes the page. Without a guard it only takes what would be told to one.
func newWatchman() (*watchman, error) {
	inherit := &windows.SecurityAttributes{InheritHandle: 1}
	inherit.Length = uint32(unsafe.Sizeof(*inherit))
	w := &watchman{}
	var err error
	if w.mapping, err = windows.CreateFileMapping(windows.InvalidHandle, inherit, windows.PAGE_READWRITE, 0, 4096, nil); err != nil {
		return nil, fmt.Errorf("share a page with candid's guard: %w", err)
	}
	view, err := windows.MapViewOfFile(w.mapping, windows.FILE_MAP_READ|windows.FILE_MAP_WRITE, 0, 0, 4096)
	if err != nil {
		windows.CloseHandle(w.mapping)
		return nil, fmt.Errorf("share a page with candid's guard: %w", err)
	}
	w.page = *(**guard.Page)(unsafe.Pointer(&view))
	me := windows.CurrentProcess()
	if err := windows.DuplicateHandle(me, me, me, &w.self, windows.SYNCHRONIZE, true, 0); err != nil {
		w.close()
		return nil, fmt.Errorf("give candid's guard a handle: %w", err)
	}
	return w, nil
}

func (w *watchman) close() {
	if w.process != 0 {
		// It has nothing to guard any more.
		_ = windows.TerminateProcess(w.process, 0)
		windows.CloseHandle(w.process)
		w.process = 0
	}
	if w.self != 0 {
		windows.CloseHandle(w.self)
	}
	if w.page != nil {
		_ = windows.UnmapViewOfFile(uintptr(unsafe.Pointer(w.page)))
		w.page = nil
	}
	windows.CloseHandle(w.mapping)
}

// start starts the guard, which is then to be waited for.
func (w *watchman) start() error {
	if w.process != 0 {
		windows.CloseHandle(w.process)
		w.process = 0
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start candid's guard: %w", err)
	}
	w.page.Ready = 0
	argv := []string{exe, guard.Name, strconv.FormatUint(uint64(w.mapping), 10), strconv.FormatUint(uint64(w.self), 10)}
	// It has no console, so that neither Ctrl-C nor closing the window ends it, and it is in no job
	// that ends with candid, if that is permitted.
	const flags = windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP
	for _, more := range []uint32{windows.CREATE_BREAKAWAY_FROM_JOB, 0} {
		attr := &os.ProcAttr{Files: []*os.File{nil, nil, nil}, Sys: &syscall.SysProcAttr{
			HideWindow: true, CreationFlags: flags | more,
			AdditionalInheritedHandles: []syscall.Handle{syscall.Handle(w.mapping), syscall.Handle(w.self)},
		}}
		var p *os.Process
		if p, err = os.StartProcess(exe, argv, attr); err == nil {
			w.pid = p.Pid
			w.process, err = windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
			_ = p.Release()
		}
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("start candid's guard, which resumes a thread if candid is ended: %w", err)
}

// guardPatience is how long a guard may take to start.
const guardPatience = 60 * time.Second

var errGuardEnded = errors.New("it ended at once")

// await waits until the guard waits for candid's end.
func (w *watchman) await() error {
	for begin := time.Now(); w.page.Ready == 0; time.Sleep(time.Millisecond) {
		switch {
		case w.gone():
			return fmt.Errorf("start candid's guard: %w", errGuardEnded)
		case time.Since(begin) > guardPatience:
			return fmt.Errorf("start candid's guard: it was not ready within %v", guardPatience)
		}
	}
	return nil
}

// gone reports whether the guard has ended.
func (w *watchman) gone() bool {
	if w.process == 0 {
		return false
	}
	ev, err := windows.WaitForSingleObject(w.process, 0)
	return err == nil && ev == windows.WAIT_OBJECT_0
}
