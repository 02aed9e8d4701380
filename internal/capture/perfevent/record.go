package perfevent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Types of records, PERF_RECORD_* of linux/perf_event.h.
const (
	RecordMmap       = 1
	RecordLost       = 2
	RecordComm       = 3
	RecordExit       = 4
	RecordThrottle   = 5
	RecordUnthrottle = 6
	RecordFork       = 7
	RecordSample     = 9
	RecordMmap2      = 10
	RecordLostSample = 13
)

// Bits of a record's misc field that the parser looks at.
const (
	miscMode     = 7 // where the CPU was: 1 in the kernel, 2 in user code
	miscKernel   = 1
	miscCommExec = 1 << 13
	miscBuildID  = 1 << 14 // in a mapping: a build-id takes the place of the device and inode
)

// Parts of a sample, PERF_SAMPLE_* of linux/perf_event.h, in numerical order; the kernel writes
// them in an order of its own.
const (
	sampleTID       = 1 << 1
	sampleTime      = 1 << 2
	sampleCallchain = 1 << 5
	sampleCPU       = 1 << 7
	samplePeriod    = 1 << 8
	sampleRegsUser  = 1 << 12
	sampleStackUser = 1 << 13
)

// headerSize is the size of struct perf_event_header: type, misc, size.
const headerSize = 8

// trailerSize is the size of the identification at the end of every record but a sample: pid, tid,
// time, cpu (sample_id_all).
const trailerSize = 24

// contextMarks is the lowest value of a call chain that is a mark (PERF_CONTEXT_*) and not an
// address.
const contextMarks = ^uint64(4095) + 1

// maxChain bounds a call chain (kernel.perf_event_max_stack is 127 by default).
const maxChain = 1024

// ErrRecord is wrapped by every error about a record whose contents contradict its type and size.
var ErrRecord = errors.New("malformed perf record")

// Layout is what the samples of an event contain besides pid, tid, time, cpu and period, which all
// of this package's events request.
type Layout struct {
	Callchain bool
	RegsMask  uint64 // registers, 0 for none; if it is not 0, the stack is included too
}

// Record is a parsed record. Its slices are valid until the next Parse or until
// the ring is released.
type Record struct {
	Type     uint32
	PID, TID uint32
	Time     uint64 // ns of the event's clock
	CPU      uint32
	Period   uint64

	Parent uint32 // of a fork: the parent's PID
	Lost   uint64 // of a loss: number of lost records
	Exec   bool   // of a comm: the name was changed by exec
	Comm   []byte

	Map  Mmap   // of a mapping
	Path []byte // of a mapping's file, as the kernel names it

	InKernel bool     // of a sample
	Kernel   []uint64 // without marks, innermost first
	ABI      uint64   // of the registers: 0 none, 1 32 bits, 2 64 bits
	Regs     [64]uint64
	Stack    []byte // as much as the kernel could read
}

// Mmap is a new executable mapping. In a RecordMmap the fields after Offset are 0.
type Mmap struct {
	Addr, Len, Offset uint64
	Major, Minor      uint32
	Inode             uint64
	Prot, Flags       uint32 // as mmap takes them
}

// Parse parses one record, whose header says that it is len(b) long.
func (l Layout) Parse(b []byte, r *Record) error {
	if len(b) < headerSize {
		return fmt.Errorf("%w: %d bytes", ErrRecord, len(b))
	}
	le := binary.LittleEndian
	r.Type = le.Uint32(b)
	misc := le.Uint16(b[4:])
	r.Kernel, r.Stack, r.Comm, r.Path = r.Kernel[:0], nil, nil, nil
	r.PID, r.TID, r.Time, r.CPU, r.Period = 0, 0, 0, 0, 0
	r.Parent, r.Lost, r.Exec, r.ABI, r.Map = 0, 0, false, 0, Mmap{}
	r.InKernel = misc&miscMode == miscKernel
	if r.Type == RecordSample {
		return l.sample(b[headerSize:], r)
	}
	if len(b) < headerSize+trailerSize {
		return fmt.Errorf("%w: type %d of %d bytes", ErrRecord, r.Type, len(b))
	}
	body, trailer := b[headerSize:len(b)-trailerSize], b[len(b)-trailerSize:]
	r.PID, r.TID = le.Uint32(trailer), le.Uint32(trailer[4:])
	r.Time, r.CPU = le.Uint64(trailer[8:]), le.Uint32(trailer[16:])
	need := func(n int) error {
		if len(body) < n {
			return fmt.Errorf("%w: type %d has %d bytes of %d", ErrRecord, r.Type, len(body), n)
		}
		return nil
	}
	switch r.Type {
	case RecordLost: // id, lost
		if err := need(16); err != nil {
			return err
		}
		r.Lost = le.Uint64(body[8:])
	case RecordLostSample: // lost
		if err := need(8); err != nil {
			return err
		}
		r.Lost = le.Uint64(body)
	case RecordComm: // pid, tid, name
		if err := need(8); err != nil {
			return err
		}
		r.PID, r.TID = le.Uint32(body), le.Uint32(body[4:])
		r.Exec = misc&miscCommExec != 0
		r.Comm = text(body[8:])
	case RecordFork, RecordExit: // pid, ppid, tid, ptid, time
		if err := need(24); err != nil {
			return err
		}
		r.PID, r.Parent, r.TID = le.Uint32(body), le.Uint32(body[4:]), le.Uint32(body[8:])
	case RecordMmap, RecordMmap2: // pid, tid, address, length, offset, …
		if err := need(32); err != nil {
			return err
		}
		r.PID, r.TID = le.Uint32(body), le.Uint32(body[4:])
		r.Map.Addr, r.Map.Len, r.Map.Offset = le.Uint64(body[8:]), le.Uint64(body[16:]), le.Uint64(body[24:])
		if r.Type == RecordMmap {
			r.Path = text(body[32:])
			break
		}
		if err := need(64); err != nil { // major, minor, inode, generation, protection, flags
			return err
		}
		if misc&miscBuildID == 0 {
			r.Map.Major, r.Map.Minor, r.Map.Inode = le.Uint32(body[32:]), le.Uint32(body[36:]), le.Uint64(body[40:])
		}
		r.Map.Prot, r.Map.Flags = le.Uint32(body[56:]), le.Uint32(body[60:])
		r.Path = text(body[64:])
	}
	return nil
}

// text returns b up to its first zero byte.
func text(b []byte) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}

func (l Layout) sample(b []byte, r *Record) error {
	le := binary.LittleEndian
	short := func(what string) error {
		return fmt.Errorf("%w: a sample ends before its %s", ErrRecord, what)
	}
	if len(b) < 32 {
		return short("period")
	}
	r.PID, r.TID, r.Time = le.Uint32(b), le.Uint32(b[4:]), le.Uint64(b[8:])
	r.CPU, r.Period = le.Uint32(b[16:]), le.Uint64(b[24:])
	b = b[32:]
	if l.Callchain {
		if len(b) < 8 {
			return short("call chain")
		}
		n := le.Uint64(b)
		b = b[8:]
		if n > maxChain || n*8 > uint64(len(b)) {
			return fmt.Errorf("%w: a call chain of %d in %d bytes", ErrRecord, n, len(b))
		}
		for i := range int(n) {
			if ip := le.Uint64(b[i*8:]); ip < contextMarks {
				r.Kernel = append(r.Kernel, ip)
			}
		}
		b = b[n*8:]
	}
	if l.RegsMask == 0 {
		return nil
	}
	if len(b) < 8 {
		return short("registers")
	}
	r.ABI = le.Uint64(b)
	b = b[8:]
	if r.ABI != 0 {
		if len(b) < 8*bits.OnesCount64(l.RegsMask) {
			return short("registers' end")
		}
		for m := l.RegsMask; m != 0; m &= m - 1 {
			r.Regs[bits.TrailingZeros64(m)] = le.Uint64(b)
			b = b[8:]
		}
	}
	if len(b) < 8 {
		return short("stack")
	}
	size := le.Uint64(b)
	b = b[8:]
	if size == 0 {
		return nil
	}
	if size > uint64(len(b)) || uint64(len(b))-size < 8 {
		return fmt.Errorf("%w: a stack of %d in %d bytes", ErrRecord, size, len(b))
	}
	got := le.Uint64(b[size:])
	if got > size {
		return fmt.Errorf("%w: %d bytes of a stack of %d", ErrRecord, got, size)
	}
	r.Stack = b[:got]
	return nil
}
