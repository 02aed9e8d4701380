package target

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/winsys"
)

// processSystem is what is held of an open process on Windows.
type processSystem struct {
	mu     sync.Mutex
	handle windows.Handle       // 0: none
	files  map[string]fileid.ID // identities of mapped files, by path: they cannot be replaced while they are mapped
	images map[uint64]*image    // by base; those of images that were unloaded may be among them

	regionReader regionReader
	maps         []Mapping     // what Mappings found last
	listed       time.Time     // when
	version      int           // of regions
	list         winsys.Loader // as it was then
}

func (s *processSystem) holdNothing() { s.handle = 0 }

// Open opens a process. The errors are *AccessError and wrap ErrNoProcess, ErrPermission, ErrZombie,
// ErrKernelThread or ErrUnsupported.
func Open(pid int) (*Process, error) {
	h, reason := openProcess(pid)
	if reason != ReasonNone {
		return nil, &AccessError{PID: pid, Reason: reason, UID: -1}
	}
	p := &Process{PID: pid, uid: -1}
	p.sys.handle = h
	p.mem = newMemory(&handleAccess{h: h})
	p.StartTime = startTicks(h)
	p.exe = winsys.ImagePath(h)
	p.comm = BaseName(p.exe)
	if command, _ := winsys.Started(h); command != "" {
		p.cmdline = splitCommand(command)
	}
	if p.cmdline == nil && p.exe != "" {
		p.cmdline = []string{p.exe}
	}
	return p, nil
}

// openProcess opens a process for reading, or says why it cannot be read.
func openProcess(pid int) (windows.Handle, Reason) {
	if pid <= 0 || uint64(pid) > 1<<32-1 {
		return 0, ReasonNoProcess
	}
	if pid == 4 {
		return 0, ReasonKernelThread
	}
	winsys.EnableDebug()
	const rights = windows.PROCESS_VM_READ | windows.PROCESS_QUERY_INFORMATION | windows.SYNCHRONIZE
	h, err := windows.OpenProcess(rights, false, uint32(pid))
	switch {
	case err == nil:
	case errors.Is(err, windows.ERROR_INVALID_PARAMETER):
		return 0, ReasonNoProcess
	case errors.Is(err, windows.ERROR_ACCESS_DENIED) && winsys.Protection(uint32(pid))&7 != 0:
		return 0, ReasonProtected
	default:
		return 0, ReasonNotAdmin
	}
	switch {
	case hasEnded(h):
		windows.CloseHandle(h)
		return 0, ReasonZombie
	case !sameMachine(winsys.Machine(h)):
		windows.CloseHandle(h)
		return 0, ReasonMachine
	}
	return h, ReasonNone
}

// sameMachine reports whether code for a processor can be examined by this program. Programs for
// x86-64 run on arm64 too, by translated code.
func sameMachine(m uint16) bool { return m == 0 || m == ownMachine }

func hasEnded(h windows.Handle) bool {
	ev, err := windows.WaitForSingleObject(h, 0)
	return err == nil && ev == windows.WAIT_OBJECT_0
}

// startTicks returns when a process was created, in hundredths of a second since the machine
// started.
func startTicks(h windows.Handle) uint64 {
	var created, exit, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &exit, &kernel, &user) != nil {
		return 0
	}
	return sinceBoot(filetime(created))
}

func filetime(f windows.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }

// sinceBoot converts a FILETIME to hundredths of a second since the machine started.
func sinceBoot(ft int64) uint64 { return uint64(max(ft-bootTime(), 0)) / 100_000 }

// bootTime is when the performance counter began, in FILETIME. It is found once, so that the same
// process has the same StartTime each time.
var bootTime = sync.OnceValue(func() int64 {
	var now windows.Filetime
	windows.GetSystemTimePreciseAsFileTime(&now)
	return filetime(now) - int64(winsys.Clock()/100)
})

// splitCommand splits a command line as the C library does.
func splitCommand(s string) []string {
	argv, err := windows.DecomposeCommandLine(s)
	if err != nil {
		return []string{s}
	}
	return argv
}

// Close releases the process.
func (p *Process) Close() error {
	if p.mem != nil {
		p.mem.close()
	}
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	if p.sys.handle != 0 {
		windows.CloseHandle(p.sys.handle)
		p.sys.handle = 0
	}
	return nil
}

// Alive reports whether the process still runs.
func (p *Process) Alive() bool {
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	return p.sys.handle != 0 && !hasEnded(p.sys.handle)
}

// Replaced returns false: a process of Windows runs one program.
func (p *Process) Replaced() bool { return false }

// handle returns the process's handle.
func (p *Process) handle() (windows.Handle, error) {
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	if p.sys.handle == 0 {
		return 0, &AccessError{PID: p.PID, Reason: ReasonNoProcess, UID: -1}
	}
	return p.sys.handle, nil
}

// Directory returns the process's current directory, "" if it cannot be read.
func (p *Process) Directory() string {
	h, err := p.handle()
	if err != nil {
		return ""
	}
	_, dir := winsys.Started(h)
	return winsys.PlainPath(dir)
}

// Root returns "": a process of Windows sees the same files as candid.
func (p *Process) Root() string { return "" }

// RootPath returns the path itself.
func (p *Process) RootPath(path string) string { return path }

// OpenFile opens the file of a mapping. The error wraps ErrStale if there is another file now.
func (p *Process) OpenFile(m Mapping) (File, error) {
	if p.saved != nil {
		return p.saved.Open(m)
	}
	if !m.FileBacked() {
		return nil, fmt.Errorf("open %q: no file: %w", m.Path, ErrUnsupported)
	}
	f, err := os.Open(m.Path)
	if err != nil {
		return nil, err
	}
	if c, err := fileid.Of(f); err != nil || c.ID != m.ID() {
		f.Close()
		return nil, fmt.Errorf("open %s: %w", m.Path, ErrStale)
	}
	return f, nil
}

// OpenInRoot opens a file by its path.
func (p *Process) OpenInRoot(path string) (*os.File, error) { return os.Open(path) }

// OpenPerfMap returns an error that wraps fs.ErrNotExist: perf maps are Linux's.
func (p *Process) OpenPerfMap() (*os.File, error) {
	return nil, fmt.Errorf("perf map of process %d: %w", p.PID, fs.ErrNotExist)
}

// Threads lists the process's threads, by ascending TID.
func (p *Process) Threads() ([]Thread, error) {
	var s winsys.Snapshot
	info, err := p.find(&s)
	if err != nil {
		return nil, err
	}
	entry := p.entry()
	out := make([]Thread, 0, len(info.Threads))
	for i := range info.Threads {
		t := &info.Threads[i]
		out = append(out, Thread{TID: int(t.TID), Name: p.threadName(t.TID, entry), CPU: t.CPU()})
	}
	slices.SortFunc(out, func(a, b Thread) int { return a.TID - b.TID })
	return out, nil
}

// find lists all processes and returns this one.
func (p *Process) find(s *winsys.Snapshot) (*winsys.ProcessInfo, error) {
	if err := s.Take(); err != nil {
		return nil, err
	}
	info := s.Process(uint32(p.PID))
	if info == nil || sinceBoot(info.Created) != p.StartTime || !p.Alive() {
		return nil, &AccessError{PID: p.PID, Reason: ReasonNoProcess, UID: -1}
	}
	return info, nil
}

// Thread reads one thread; the error wraps ErrNoProcess if there is none.
func (p *Process) Thread(tid int) (Thread, error) {
	h, err := openThread(tid, p.PID)
	if err != nil {
		return Thread{}, err
	}
	defer windows.CloseHandle(h)
	_, cpu, _ := winsys.ThreadTimes(h)
	return Thread{TID: tid, Name: p.nameOf(h, p.entry()), CPU: cpu}, nil
}

// ThreadName returns the name that the program gave a thread. A thread without one is named by
// where it began: the program's first thread by the program, any other by "module+0x12".
func (p *Process) ThreadName(tid int) (string, error) {
	h, err := openThread(tid, p.PID)
	if err != nil {
		return "", err
	}
	defer windows.CloseHandle(h)
	return p.nameOf(h, p.entry()), nil
}

func (p *Process) threadName(tid uint32, entry uint64) string {
	h, err := openThread(int(tid), p.PID)
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(h)
	return p.nameOf(h, entry)
}

var getProcessIDOfThread = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetProcessIdOfThread")

// openThread opens a thread for queries, if it is one of the process's.
func openThread(tid, pid int) (windows.Handle, error) {
	h, err := windows.OpenThread(windows.THREAD_QUERY_INFORMATION, false, uint32(tid))
	if err != nil {
		return 0, fmt.Errorf("thread %d of process %d: %w (%v)", tid, pid, ErrNoProcess, err)
	}
	if of, _, _ := getProcessIDOfThread.Call(uintptr(h)); int(of) != pid {
		windows.CloseHandle(h)
		return 0, fmt.Errorf("thread %d is none of process %d: %w", tid, pid, ErrNoProcess)
	}
	return h, nil
}

func (p *Process) nameOf(h windows.Handle, entry uint64) string {
	if name := winsys.Description(h); name != "" {
		return name
	}
	at := winsys.StartAddress(h)
	if at == 0 {
		return ""
	}
	if at == entry {
		return p.comm
	}
	return p.place(at)
}

// place returns an address as "module+0x12".
func (p *Process) place(at uint64) string {
	if base, im := p.imageOf(at); im != nil {
		return fmt.Sprintf("%s+%#x", BaseName(im.path), at-base)
	}
	return fmt.Sprintf("%#x", at)
}

// entry returns the address at which the program begins, 0 if it is not known.
func (p *Process) entry() uint64 {
	h, err := p.handle()
	if err != nil {
		return 0
	}
	base := winsys.ImageBase(h)
	if found, im := p.imageOf(base); im != nil && found == base {
		return base + im.entry
	}
	if im := readImage(p.mem, base); im != nil {
		return base + im.entry
	}
	return 0
}

// CPUTimes reads how long each thread of the process has run, in ns by thread id, as the kernel
// accounts it: in steps of its clock's tick, 10 to 16 ms.
func CPUTimes(p *Process) (map[int]uint64, error) {
	var s winsys.Snapshot
	info, err := p.find(&s)
	if err != nil {
		return nil, err
	}
	out := make(map[int]uint64, len(info.Threads))
	for i := range info.Threads {
		out[int(info.Threads[i].TID)] = info.Threads[i].CPU()
	}
	return out, nil
}

// CPUTime reads how long all threads of the process have run, in ns, including those that have
// ended.
func CPUTime(p *Process) (uint64, error) {
	user, kernel, err := p.times()
	return 100 * (user + kernel), err
}

// times reads the process's times on a CPU in units of 100 ns. They can be read after its end.
func (p *Process) times() (user, kernel uint64, err error) {
	h, err := p.handle()
	if err != nil {
		return 0, 0, err
	}
	var c, e, k, u windows.Filetime
	if err := windows.GetProcessTimes(h, &c, &e, &k, &u); err != nil {
		return 0, 0, fmt.Errorf("read the CPU time of process %d: %w", p.PID, err)
	}
	return uint64(filetime(u)), uint64(filetime(k)), nil
}

// CPUTicks reads how long a thread of the process has run in user mode and in the kernel, in
// hundredths of a second. For thread 0 it is the time of all threads, including those that have
// ended.
func CPUTicks(p *Process, tid int) (user, system uint64, err error) {
	const tick = 100_000
	if tid == 0 {
		user, system, err = p.times()
		return user / tick, system / tick, err
	}
	h, err := openThread(tid, p.PID)
	if err != nil {
		return 0, 0, err
	}
	defer windows.CloseHandle(h)
	_, cpu, _ := winsys.ThreadTimes(h)
	return cpu / (100 * tick), 0, nil
}
