package winsys

import (
	"encoding/binary"
	"fmt"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Thread states of KTHREAD_STATE.
const (
	StateInitialized = 0 // Wine reports it of every thread
	StateReady       = 1
	StateRunning     = 2
	StateStandby     = 3
	StateTerminated  = 4
	StateWaiting     = 5
	StateTransition  = 6
	StateDeferred    = 7
)

// WaitSuspended is the KWAIT_REASON of a thread that is suspended.
const WaitSuspended = 5

// ThreadInfo is a thread in a Snapshot.
type ThreadInfo struct {
	TID      uint32
	Created  int64  // FILETIME
	User     uint64 // time on a CPU in user mode, in units of 100 ns
	Kernel   uint64 // the same in the kernel
	Start    uint64 // the address at which the kernel started it
	Switches uint32 // context switches
	State    uint8
	Wait     uint8 // KWAIT_REASON, if it waits
}

// CPU returns the thread's time on a CPU in ns.
func (t *ThreadInfo) CPU() uint64 { return 100 * (t.User + t.Kernel) }

// ProcessInfo is a process in a Snapshot.
type ProcessInfo struct {
	PID, Parent, Session uint32
	Created              int64  // FILETIME
	User, Kernel         uint64 // units of 100 ns, of all its threads, also those that have ended
	Resident, Peak       uint64 // bytes of memory
	Threads              []ThreadInfo
	image                []byte // UTF-16
}

// Name returns the file name of its program, "" for the kernel's idle process.
func (p *ProcessInfo) Name() string {
	u := make([]uint16, len(p.image)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(p.image[2*i:])
	}
	return string(utf16.Decode(u))
}

// Snapshot lists processes with their threads. Its memory is used again by the next Take.
type Snapshot struct {
	Processes []ProcessInfo
	buf       []byte
	threads   []ThreadInfo
	bounds    [][2]int // of each process, in threads
}

const (
	systemProcessInformation = 5
	statusLengthMismatch     = 0xc0000004
	// maxSnapshot bounds the kernel's answer: some 350 bytes for a process and 80 for a thread.
	maxSnapshot = 256 << 20

	processHeader, threadHeader = 0x100, 0x50
)

// Take lists all processes and threads by one call of NtQuerySystemInformation.
func (s *Snapshot) Take() error {
	if s.buf == nil {
		s.buf = make([]byte, 256<<10)
	}
	for {
		var need uint32
		err := windows.NtQuerySystemInformation(systemProcessInformation, unsafe.Pointer(&s.buf[0]), uint32(len(s.buf)), &need)
		if err == nil {
			return s.parse(s.buf[:min(int(need), len(s.buf))])
		}
		if st, ok := err.(windows.NTStatus); !ok || uint32(st) != statusLengthMismatch || len(s.buf) >= maxSnapshot {
			return fmt.Errorf("list processes: %w", err)
		}
		s.buf = make([]byte, min(max(2*len(s.buf), int(need)+int(need)/4), maxSnapshot))
	}
}

// parse reads the kernel's answer: entries of SYSTEM_PROCESS_INFORMATION, each followed by its
// threads.
func (s *Snapshot) parse(b []byte) error {
	s.Processes, s.threads, s.bounds = s.Processes[:0], s.threads[:0], s.bounds[:0]
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	le := binary.LittleEndian
	// Threads are sliced when all are there: appending moves them.
	for off := 0; ; {
		if len(b)-off < processHeader {
			break
		}
		e := b[off:]
		next, n := int(le.Uint32(e)), int(le.Uint32(e[4:]))
		p := ProcessInfo{
			PID: uint32(le.Uint64(e[0x50:])), Parent: uint32(le.Uint64(e[0x58:])), Session: le.Uint32(e[0x64:]),
			Created: int64(le.Uint64(e[0x20:])), User: le.Uint64(e[0x28:]), Kernel: le.Uint64(e[0x30:]),
			Peak: le.Uint64(e[0x88:]), Resident: le.Uint64(e[0x90:]),
		}
		if length, at := int(le.Uint16(e[0x38:])), le.Uint64(e[0x40:])-base; at < uint64(len(b)) && length <= len(b)-int(at) {
			p.image = b[at : int(at)+length]
		}
		first := len(s.threads)
		for i := 0; i < n && processHeader+(i+1)*threadHeader <= len(e); i++ {
			t := e[processHeader+i*threadHeader:]
			s.threads = append(s.threads, threadInfo(t))
		}
		s.Processes = append(s.Processes, p)
		s.bounds = append(s.bounds, [2]int{first, len(s.threads)})
		if next <= 0 {
			break
		}
		off += next
	}
	for i := range s.Processes {
		s.Processes[i].Threads = s.threads[s.bounds[i][0]:s.bounds[i][1]]
	}
	return nil
}

// Process returns a process of the list; nil if it has none with that id.
func (s *Snapshot) Process(pid uint32) *ProcessInfo {
	for i := range s.Processes {
		if s.Processes[i].PID == pid {
			return &s.Processes[i]
		}
	}
	return nil
}
