package clrgc

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/candid-profiler/candid/internal/emulate"
)

// Process is what is read of a process, which controls all of it.
type Process interface {
	// ReadAt fills p from addr as it is now, or returns an error.
	ReadAt(p []byte, addr uint64) error
	// Code fills p with machine code from pc on that comes from a file, and returns how many bytes
	// there were.
	Code(pc uint64, p []byte) int
}

// Errors of Open and Read.
var (
	// ErrUnknown says that the collector is not one that is understood.
	ErrUnknown = errors.New("its garbage collector is not understood")
	// ErrBusy says that the program stands still for a collection now, or that one came while its
	// records were read: they may be half written.
	ErrBusy = errors.New("a collection is running")
)

// Functions of IGCHeap by their place in its table (gcinterface.h of releases 8.0, 9.0 and 10.0, which
// differ in this only behind them).
const (
	isConcurrentGCInProgress = 5
	isConcurrentGCEnabled    = 8
	getMemoryInfo            = 12
	collectionCount          = 23
	getTotalBytesInUse       = 26
	getMaxGeneration         = 29
	isGCInProgressHelper     = 38
	getLastGCStartTime       = 50
	getLastGCDuration        = 51
	getTotalPauseDuration    = 79
	tableSize                = 80
)

// used are the functions that are executed.
var used = [...]int{
	isConcurrentGCInProgress, isConcurrentGCEnabled, getMemoryInfo, collectionCount, getTotalBytesInUse, getMaxGeneration,
	isGCInProgressHelper, getLastGCStartTime, getLastGCDuration, getTotalPauseDuration,
}

// Bounds of what is executed, in instructions. A function that adds up all regions of the heap takes some
// ten for each.
const (
	shortCall = 2000
	longCall  = 1 << 17
)

// Generations is how many generations a collector has: 0, 1 and 2.
const Generations = 3

// Collector is the garbage collector of one process. It is used from one goroutine.
type Collector struct {
	heap    uint64 // IGCHeap
	calls   emulate.Convention
	table   [tableSize]uint64
	machine emulate.Machine
	code    *emulate.Code
	space   space
}

// Open finds the collector whose interface (IGCHeap) is at an address, and whose functions are called
// by a convention. The error wraps ErrUnknown.
func Open(p Process, heap uint64, calls emulate.Convention) (*Collector, error) {
	c := &Collector{heap: heap, calls: calls, code: emulate.NewCode(), space: space{process: p, lines: map[uint64]int{}}}
	var b [8 * tableSize]byte
	if err := p.ReadAt(b[:8], heap); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrUnknown)
	}
	if err := p.ReadAt(b[:], binary.LittleEndian.Uint64(b[:])); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrUnknown)
	}
	for i := range c.table {
		c.table[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	for _, i := range used {
		if p.Code(c.table[i], b[:1]) != 1 {
			return nil, fmt.Errorf("function %d of its interface, %#x, is not in a file: %w", i, c.table[i], ErrUnknown)
		}
	}
	n, err := c.number(getMaxGeneration, 4)
	if err != nil {
		return nil, err
	}
	if n != Generations-1 {
		return nil, fmt.Errorf("its oldest generation is %d: %w", n, ErrUnknown)
	}
	return c, nil
}

// call executes a function of the interface. The error wraps ErrUnknown.
func (c *Collector) call(function, steps int, args ...uint64) error {
	c.space.reads = c.space.reads[:0]
	if err := c.machine.Call(c.calls, c.table[function], append([]uint64{c.heap}, args...), steps, c.code, &c.space); err != nil {
		return fmt.Errorf("function %d of its interface: %w: %w", function, err, ErrUnknown)
	}
	return nil
}

// number executes a function that returns a number of so many bytes.
func (c *Collector) number(function int, size uint8, args ...uint64) (uint64, error) {
	if err := c.call(function, shortCall, args...); err != nil {
		return 0, err
	}
	return c.returned(function, size)
}

func (c *Collector) returned(function int, size uint8) (uint64, error) {
	n, ok := c.machine.Returned(size)
	if !ok {
		return 0, fmt.Errorf("function %d of its interface returns nothing that is known: %w", function, ErrUnknown)
	}
	return n, nil
}

// flag executes a function that returns a bool.
func (c *Collector) flag(function int, args ...uint64) (bool, error) {
	n, err := c.number(function, 1, args...)
	return n != 0, err
}

// milliseconds executes a function that returns a time in ms that it keeps in µs, and returns it in µs:
// the word that it has read last, if that gives the result.
func (c *Collector) milliseconds(function int, generation uint64) (us uint64, ok bool) {
	ms, err := c.number(function, 8, generation)
	if n := len(c.space.reads); err == nil && n > 0 {
		us = c.space.reads[n-1]
		return us, us/1000 == ms
	}
	return 0, false
}

// InUse returns how many bytes of the heap objects have, as GC.GetTotalMemory does.
func (c *Collector) InUse() (uint64, error) {
	c.space.forget()
	if busy, err := c.flag(isGCInProgressHelper, 0); err != nil || busy {
		return 0, errors.Join(err, ErrBusy)
	}
	if err := c.call(getTotalBytesInUse, longCall); err != nil {
		return 0, err
	}
	return c.returned(getTotalBytesInUse, 8)
}

// Concurrent reports whether the oldest generation may be collected while the program runs.
func (c *Collector) Concurrent() (bool, error) {
	c.space.forget()
	return c.flag(isConcurrentGCEnabled)
}
