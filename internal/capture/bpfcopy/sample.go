package bpfcopy

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
)

// Kinds of record in the ring, as in bpf/capture.c.
const (
	kindSample = 1
	kindNotice = 2
)

// Kinds of notices, as in bpf/capture.c.
const (
	noticeExec = 1
	noticeFork = 2
	noticeExit = 3
	noticeComm = 4
)

// Offsets in struct sample of bpf/capture.c.
const (
	offFlags     = 4
	offTime      = 8
	offPID       = 16
	offTID       = 20
	offCPU       = 24
	offKernelLen = 28
	offStackAddr = 32
	offStackTop  = 40
	offStackLen  = 48
	offStackOff  = 52
	offWeight    = 56
	offOtherAddr = 64
	offOtherLen  = 72
	offOtherOff  = 76
	offOtherPC   = 80
	offEvent     = 88
	offSyscall   = 92
	offState     = 96
	offAsleep    = 104
	offReady     = 112
	offRegions   = 120
	offRegionOff = 124
	offRegs      = 128
	sampleSize   = offRegs + 8*regWords

	// Offsets in each entry of the list of regions.
	offRegionAddr = 0
	offRegionLen  = 8
	offRegionAt   = 12
	regionSize    = 16
	maxRegions    = 64
)

// Offsets in struct notice.
const (
	offNotePID    = 16
	offNoteTID    = 20
	offNoteParent = 24
	offNoteLast   = 28
	offNoteStatus = 32
	offNoteComm   = 40
	noticeSize    = offNoteComm + 16
)

// Offsets in struct look of bpf/offcpu.c.
const (
	offLookSince      = 0
	offLookPID        = 8
	offLookTID        = 12
	offLookState      = 16
	offLookSyscall    = 20
	offLookThreadBase = 24
	offLookFirstStack = 32
	offLookKernelLen  = 40
	offLookRegs       = 48
	offLookKernel     = offLookRegs + 8*regWords
	lookDepth         = 32
	lookSize          = offLookKernel + 8*lookDepth
)

// maxKernel bounds the length of the kernel's chain.
const maxKernel = 128

// errRecord says that a record does not have the form that the program writes.
var errRecord = errors.New("malformed record from the BPF program")

// Values of a sample's event that are not an index into Options.Events.
const (
	eventTick = 0xfffe // a CPU's clock
	eventAway = 0xffff // time that a thread was off the CPU
)

// decodeSample fills a Snapshot from a record; its slices point into b, and its weight is the
// kernel's own notion of the period.
func decodeSample(b []byte, s *capture.Snapshot) error {
	if len(b) < sampleSize {
		return fmt.Errorf("%w: a sample of %d bytes", errRecord, len(b))
	}
	le := binary.LittleEndian
	s.Flags, s.Sleep = capture.Flags(le.Uint32(b[offFlags:])), 0
	s.Time = le.Uint64(b[offTime:])
	s.PID, s.TID, s.CPU = le.Uint32(b[offPID:]), le.Uint32(b[offTID:]), le.Uint32(b[offCPU:])
	s.Weight = le.Uint64(b[offWeight:])
	s.Event, s.Syscall = uint16(le.Uint32(b[offEvent:])), le.Uint32(b[offSyscall:])
	s.State = min(capture.State(le.Uint32(b[offState:])), capture.Uninterruptible)
	kernel := uint64(le.Uint32(b[offKernelLen:]))
	if kernel > maxKernel || sampleSize+8*kernel > uint64(len(b)) {
		return fmt.Errorf("%w: a kernel chain of %d in %d bytes", errRecord, kernel, len(b))
	}
	s.Kernel = s.Kernel[:0]
	for i := range kernel {
		s.Kernel = append(s.Kernel, le.Uint64(b[sampleSize+8*i:]))
	}
	s.StackAddr, s.StackTop = le.Uint64(b[offStackAddr:]), le.Uint64(b[offStackTop:])
	off, size := uint64(le.Uint32(b[offStackOff:])), uint64(le.Uint32(b[offStackLen:]))
	if off > uint64(len(b)) || size > uint64(len(b))-off {
		return fmt.Errorf("%w: a stack of %d at %d of %d bytes", errRecord, size, off, len(b))
	}
	s.Stack = b[off : off+size : off+size]
	s.OtherAddr, s.OtherPC, s.Other = 0, 0, nil
	off, size = uint64(le.Uint32(b[offOtherOff:])), uint64(le.Uint32(b[offOtherLen:]))
	if off > uint64(len(b)) || size > uint64(len(b))-off {
		return fmt.Errorf("%w: another stack of %d at %d of %d bytes", errRecord, size, off, len(b))
	}
	if size > 0 {
		s.OtherAddr, s.OtherPC = le.Uint64(b[offOtherAddr:]), le.Uint64(b[offOtherPC:])
		s.Other = b[off : off+size : off+size]
	}
	if err := decodeRegions(b, s); err != nil {
		return err
	}
	decodeRegs(b[offRegs:sampleSize], &s.Regs)
	if s.Flags&capture.NoUser != 0 {
		s.Regs.PC, s.Regs.Known = 0, 0
		// A kernel thread has no stack that could have been read: the kernel's chain is complete.
		s.Flags &^= capture.StackUnread
	}
	return nil
}

// decodeRegions reads the memory regions that were copied besides the stack.
func decodeRegions(b []byte, s *capture.Snapshot) error {
	le := binary.LittleEndian
	s.Regions = s.Regions[:0]
	n, list := uint64(le.Uint32(b[offRegions:])), uint64(le.Uint32(b[offRegionOff:]))
	if n > maxRegions || list+n*regionSize > uint64(len(b)) {
		return fmt.Errorf("%w: a list of %d regions at %d of %d bytes", errRecord, n, list, len(b))
	}
	for i := range n {
		r := b[list+i*regionSize:][:regionSize]
		size, at := uint64(le.Uint32(r[offRegionLen:])), uint64(le.Uint32(r[offRegionAt:]))
		if at > uint64(len(b)) || size > uint64(len(b))-at {
			return fmt.Errorf("%w: a region of %d at %d of %d bytes", errRecord, size, at, len(b))
		}
		if size > 0 {
			s.Regions = append(s.Regions, capture.Region{Addr: le.Uint64(r[offRegionAddr:]), Bytes: b[at : at+size : at+size]})
		}
	}
	return nil
}

// decodeNotice reads a notice; last reports whether the process's last thread has ended.
func decodeNotice(b []byte, n *capture.ProcessEvent) (last bool, err error) {
	if len(b) < noticeSize {
		return false, fmt.Errorf("%w: a notice of %d bytes", errRecord, len(b))
	}
	le := binary.LittleEndian
	switch what := le.Uint32(b[4:]); what {
	case noticeExec:
		n.Kind = capture.Exec
	case noticeFork:
		n.Kind = capture.Fork
	case noticeExit:
		n.Kind = capture.Exit
	case noticeComm:
		n.Kind = capture.Comm
	default:
		return false, fmt.Errorf("%w: a notice of kind %d", errRecord, what)
	}
	n.Time = le.Uint64(b[offTime:])
	n.PID, n.TID, n.Parent = le.Uint32(b[offNotePID:]), le.Uint32(b[offNoteTID:]), le.Uint32(b[offNoteParent:])
	n.Comm = ""
	comm := b[offNoteComm:noticeSize]
	for i, c := range comm {
		if c == 0 {
			comm = comm[:i]
			break
		}
	}
	if len(comm) > 0 {
		n.Comm = string(comm)
	}
	n.Outcome = target.Outcome{}
	if last = le.Uint32(b[offNoteLast:]) != 0; last && n.Kind == capture.Exit {
		n.Outcome = target.OutcomeOf(le.Uint32(b[offNoteStatus:]))
	}
	return last, nil
}

// word returns the first 8 bytes of b.
func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
