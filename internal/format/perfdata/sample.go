package perfdata

import "fmt"

// sample is one sample as perf wrote it. Its slices point into the record.
type sample struct {
	ip, time, period uint64
	pid, tid         uint32
	mode             uint16 // of the CPU, see the mode constants
	chain            []byte // 8 bytes each
	abi              uint64
	regs             []byte
	stack            []byte
	stackSize        uint64 // how much was requested
	stackUsed        uint64 // how much was copied
}

// The CPU's mode, the lowest bits of a record's misc.
const (
	modeMask        = 7
	modeKernel      = 1
	modeUser        = 2
	modeHypervisor  = 3
	modeGuestKernel = 4
	modeGuestUser   = 5
)

// Markers in a call chain that say whose addresses follow: the highest 4095 values.
const (
	contextFirst       = ^uint64(4095) + 1
	contextHypervisor  = ^uint64(32) + 1
	contextKernel      = ^uint64(128) + 1
	contextUser        = ^uint64(512) + 1
	contextGuest       = ^uint64(2048) + 1
	contextGuestKernel = ^uint64(2176) + 1
	contextGuestUser   = ^uint64(2560) + 1
)

// parse fills s from the body of a record.
func (s *sample) parse(a *attr, misc uint16, body []byte) error {
	*s = sample{mode: misc & modeMask}
	c := cursor{b: body}
	has := func(bit uint64) bool { return a.sampleType&bit != 0 }
	skip := func(bit uint64) {
		if has(bit) {
			c.u64()
		}
	}
	skip(sampleIdentifier)
	if has(sampleIP) {
		s.ip = c.u64()
	}
	if has(sampleTID) {
		s.pid, s.tid = c.u32(), c.u32()
	}
	if has(sampleTime) {
		s.time = c.u64()
	}
	skip(sampleAddr)
	skip(sampleID)
	skip(sampleStreamID)
	skip(sampleCPU)
	s.period = a.period
	if a.flags&flagFreq != 0 {
		s.period = 1
	}
	if has(samplePeriod) {
		s.period = c.u64()
	}
	if has(sampleRead) {
		skipRead(&c, a.readFormat)
	}
	if has(sampleCallchain) {
		s.chain = takeList(&c, c.u64(), 8)
	}
	if has(sampleRaw) {
		c.take(uint64(c.u32()))
	}
	if has(sampleBranch) {
		n := c.u64()
		if a.branch&branchHardwareIndex != 0 {
			c.u64()
		}
		takeList(&c, n, 24)
		if a.branch&branchCounters != 0 {
			takeList(&c, n, 8)
		}
	}
	if has(sampleRegsUser) {
		if s.abi = c.u64(); s.abi != 0 {
			s.regs = c.take(8 * uint64(a.numRegsUser))
		}
	}
	if has(sampleStackUser) {
		if s.stackSize = c.u64(); s.stackSize != 0 {
			s.stack = c.take(s.stackSize)
			s.stackUsed = c.u64()
			s.stack = s.stack[:min(s.stackUsed, uint64(len(s.stack)))]
		}
	}
	if c.short {
		return fmt.Errorf("%w: a sample of %d bytes", ErrMalformed, len(body))
	}
	return nil
}

// takeList takes n elements of size bytes each.
func takeList(c *cursor, n, size uint64) []byte {
	if n > uint64(len(c.b))/size {
		c.short = true
		return nil
	}
	return c.take(n * size)
}

// skipRead skips the values of counters.
func skipRead(c *cursor, format uint64) {
	n, each := uint64(1), uint64(8)
	if format&readGroup != 0 {
		n = c.u64()
	} else {
		c.u64()
		n = 0
	}
	if format&readEnabled != 0 {
		c.u64()
	}
	if format&readRunning != 0 {
		c.u64()
	}
	if format&readID != 0 {
		each += 8
	}
	if format&readLost != 0 {
		each += 8
	}
	if format&readGroup == 0 {
		c.take(each - 8)
		return
	}
	takeList(c, n, each)
}
