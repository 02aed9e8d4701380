package perfdata

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/candid-profiler/candid/internal/format/perfscript"
	"github.com/candid-profiler/candid/internal/profile"
)

// Bits of perf_event_attr.sample_type that select the fields of a sample, in the order of the
// fields.
const (
	sampleIP         = 1 << 0
	sampleTID        = 1 << 1
	sampleTime       = 1 << 2
	sampleAddr       = 1 << 3
	sampleRead       = 1 << 4
	sampleCallchain  = 1 << 5
	sampleID         = 1 << 6
	sampleCPU        = 1 << 7
	samplePeriod     = 1 << 8
	sampleStreamID   = 1 << 9
	sampleRaw        = 1 << 10
	sampleBranch     = 1 << 11
	sampleRegsUser   = 1 << 12
	sampleStackUser  = 1 << 13
	sampleIdentifier = 1 << 16
)

// The bits of read_format.
const (
	readEnabled = 1 << 0
	readRunning = 1 << 1
	readID      = 1 << 2
	readGroup   = 1 << 3
	readLost    = 1 << 4
)

// Bits of attr's flags that matter here.
const (
	flagFreq        = 1 << 10
	flagSampleIDAll = 1 << 18
)

// Bits of branch_sample_type that change what a sample holds.
const (
	branchHardwareIndex = 1 << 17
	branchCounters      = 1 << 19
)

// attr holds the fields of perf_event_attr of an event.
type attr struct {
	typ         uint32
	config      uint64
	period      uint64 // or the frequency
	sampleType  uint64
	readFormat  uint64
	flags       uint64
	branch      uint64
	regsUser    uint64
	stackUser   uint32
	name        string
	kind        profile.EventKind // known from the first sample on
	event       int               // index into the profile's events, -1: no sample yet
	numRegsUser int
}

// minAttr is the size of the first version of perf_event_attr.
const minAttr = 64

func parseAttr(b []byte) (*attr, error) {
	if len(b) < minAttr {
		return nil, fmt.Errorf("%w: an event described in %d bytes", ErrMalformed, len(b))
	}
	// Fields that later kernels appended are 0 in what an older one wrote.
	var full [128]byte
	copy(full[:], b)
	u64 := func(at int) uint64 { return le.Uint64(full[at:]) }
	a := &attr{
		typ: le.Uint32(full[0:]), config: u64(8), period: u64(16), sampleType: u64(24), readFormat: u64(32), flags: u64(40),
		branch: u64(72), regsUser: u64(80), stackUser: le.Uint32(full[88:]), event: -1,
	}
	a.numRegsUser = bits.OnesCount64(a.regsUser)
	return a, nil
}

// Names that perf gives to events of the kernel's own kinds (perf list).
var (
	hardware = []string{"cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses", "bus-cycles",
		"stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"}
	software = []string{"cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults", "major-faults",
		"alignment-faults", "emulation-faults", "dummy", "bpf-output", "cgroup-switches"}
)

// eventKind returns the kind of the event: the one that its name stands for, otherwise that of its
// type (PERF_TYPE_* of linux/perf_event.h).
func (a *attr) eventKind() profile.EventKind {
	if k := perfscript.Kind(a.label()); k != profile.EventOther {
		return k
	}
	switch a.typ {
	case 0, 1, 3, 4: // hardware, software, cache, raw
		return profile.EventCounter
	case 2:
		return profile.EventTracepoint
	}
	return profile.EventOther
}

// label returns the event's name: the one that perf wrote, otherwise one by its numbers.
func (a *attr) label() string {
	own := ""
	switch {
	case a.typ == 0 && a.config&0xffffffff < uint64(len(hardware)):
		own = hardware[a.config&0xffffffff]
	case a.typ == 1 && a.config < uint64(len(software)):
		own = software[a.config]
	case a.typ == 2:
		own = fmt.Sprintf("tracepoint %d", a.config)
	default:
		own = fmt.Sprintf("event %d/%#x", a.typ, a.config)
	}
	return cmp.Or(a.name, own)
}

// sampleIDSize returns how many bytes at the end of a record that is not a sample say when it
// happened and of which event it is.
func (a *attr) sampleIDSize() int {
	if a.flags&flagSampleIDAll == 0 {
		return 0
	}
	return 8 * bits.OnesCount64(a.sampleType&(sampleTID|sampleTime|sampleID|sampleStreamID|sampleCPU|sampleIdentifier))
}
