// Package memlimit bounds the memory that reading a file takes: a few bytes of a hostile or damaged
// file can describe a great deal.
//
// The bound is on candid's own heap as the Go runtime counts it, not on an estimate of what a reader
// keeps, so nothing that a reader allocates is forgotten. A reader asks often enough that little can
// be allocated in between.
package memlimit

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	// Base is how many bytes of the heap reading any file may take. The process as a whole takes at
	// most twice that: the rest is the program itself.
	Base = 32 << 20
	// PerByte is how many bytes it may take besides for each unpacked byte of the file that was
	// seen. With what the Go runtime adds to it, and keeps for later, the process takes at most 8.
	PerByte = 6
	// Default is how many bytes candid may take in all unless SetMax is called.
	Default = 4 << 30
	// Least is the least that SetMax accepts: candid itself takes some 20 MB.
	Least = 64 << 20
)

// ErrTooMuch is wrapped by the errors for files that take more memory than they may.
var ErrTooMuch = errors.New("it takes too much memory")

var (
	maximum atomic.Uint64 // 0: Default

	mu       sync.Mutex // of what follows
	active   []*Meter
	absolute bool
)

// SetMax sets how many bytes candid may take in all while it reads files.
func SetMax(bytes uint64) {
	maximum.Store(bytes)
	// The collector runs more often before that much is reached.
	debug.SetMemoryLimit(int64(min(bytes, math.MaxInt64)))
}

// Max returns how many bytes candid may take in all.
func Max() uint64 {
	if n := maximum.Load(); n != 0 {
		return n
	}
	return Default
}

// OnlyMax is called by a process that does other things while it reads files: from then on what its
// heap has grown by is not what a file takes, and only the limit of SetMax holds.
func OnlyMax() {
	mu.Lock()
	defer mu.Unlock()
	absolute = true
}

// Meter watches the memory that reading one file takes. A nil Meter permits everything. Its methods
// may be called by several goroutines at once.
type Meter struct {
	whole  bool
	base   uint64       // bytes of the heap before; guarded by mu
	window atomic.Int64 // bytes of a decompressor's window
	extra  atomic.Int64 // bytes that are permitted besides
	seen   atomic.Int64 // unpacked bytes
	size   atomic.Int64 // the most that count as seen
	over   atomic.Pointer[error]
}

// Start begins to watch. Stop must be called when the file was read.
func Start() *Meter {
	m := &Meter{base: heap()}
	m.size.Store(math.MaxInt64)
	mu.Lock()
	defer mu.Unlock()
	active = append(active, m)
	return m
}

// Whole returns a Meter that permits what SetMax permits, whatever was seen of the file: for one that
// is followed beside other work. It needs no Stop.
func Whole() *Meter { return &Meter{whole: true} }

// Watch calls exceeded, from another goroutine, when candid takes more than SetMax permits in what it
// does with files after they were read.
func Watch(exceeded func(error)) {
	m := Whole()
	go func() {
		for {
			time.Sleep(100 * time.Millisecond)
			if err := m.Check(); err != nil {
				exceeded(err)
				return
			}
		}
	}()
}

// Stop ends watching: what was read stays in memory, and is not counted for files that are still
// being read.
func (m *Meter) Stop() {
	mu.Lock()
	defer mu.Unlock()
	for i, other := range active {
		if other == m {
			active = append(active[:i:i], active[i+1:]...)
			for _, left := range active {
				left.base += m.allowance()
			}
			return
		}
	}
}

// Saw counts n unpacked bytes of the file as seen.
func (m *Meter) Saw(n int) {
	if m != nil {
		m.seen.Add(int64(n))
	}
}

// Size says how large the file is: bytes that are read twice do not count twice.
func (m *Meter) Size(n int64) {
	if m != nil {
		m.size.Store(n)
	}
}

// Window says that a decompressor allocates a window of n bytes at once. It touches only as many of
// them as it unpacks.
func (m *Meter) Window(n int64) {
	if m != nil {
		m.window.Store(n)
	}
}

// Permit permits n bytes besides, for what comes from other files.
func (m *Meter) Permit(n int64) {
	if m != nil {
		m.extra.Add(n)
	}
}

// allowance is how many bytes the heap may grow by for this file.
func (m *Meter) allowance() uint64 {
	seen := max(min(m.seen.Load(), m.size.Load()), 0)
	return Base + PerByte*uint64(seen) + uint64(max(m.window.Load()-seen, 0)) + uint64(m.extra.Load())
}

// Allowance returns how many bytes the file may take by what was seen of it.
func (m *Meter) Allowance() int64 {
	if m == nil {
		return math.MaxInt64
	}
	return int64(min(m.allowance(), math.MaxInt64))
}

// limit returns how large the heap may be, and what it may be without any file.
func (m *Meter) limit() (most, base uint64) {
	mu.Lock()
	defer mu.Unlock()
	most = Max()
	if absolute || m.whole {
		return most, 0
	}
	allowed := m.base
	for _, a := range active {
		allowed += a.allowance()
	}
	if allowed >= most {
		return most, 0
	}
	return allowed, m.base
}

// Err returns the error if the file takes too much, as was last found.
func (m *Meter) Err() error {
	if m == nil {
		return nil
	}
	if err := m.over.Load(); err != nil {
		return *err
	}
	return nil
}

var collecting sync.Mutex

// Check returns an error that wraps ErrTooMuch if the file takes more memory than it may. It takes
// about a microsecond: see Gate.
func (m *Meter) Check() error { return m.Room(0) }

// Room is Check for n bytes that are about to be allocated.
func (m *Meter) Room(n int) error {
	if m == nil {
		return nil
	}
	if err := m.Err(); err != nil {
		return err
	}
	more := uint64(max(n, 0))
	if most, _ := m.limit(); heap()+more <= most {
		return nil
	}
	collecting.Lock()
	defer collecting.Unlock()
	most, base := m.limit()
	if heap()+more <= most { // another goroutine collected the garbage
		return nil
	}
	runtime.GC()
	// There must be some room for garbage, or it would be collected all the time.
	if now := heap() + more; now > most-(most-base)/16 {
		err := m.exceeded(most, base)
		m.over.CompareAndSwap(nil, &err)
	}
	return m.Err()
}

func (m *Meter) exceeded(most, base uint64) error {
	if base == 0 {
		return fmt.Errorf("%w: more than %d MiB, the limit of --max-memory", ErrTooMuch, most>>20)
	}
	return fmt.Errorf("%w: more than %d MiB for the %d KiB that were read; it is damaged, or made to exhaust memory",
		ErrTooMuch, (most-base)>>20, min(m.seen.Load(), m.size.Load())>>10)
}

// heap returns the bytes of all objects in the heap, with those that are not collected yet.
func heap() uint64 {
	s := [1]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s[:])
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}

// Gate asks a Meter now and then. The zero Gate permits everything. It is not safe for several
// goroutines.
type Gate struct {
	m    *Meter
	left int
}

// Between is how often a Gate asks: each time that many things were read.
const Between = 1 << 10

// Gate returns a Gate of m.
func (m *Meter) Gate() Gate { return Gate{m: m} }

// Pass counts one thing that was read, and returns an error if the file takes too much memory. A
// thing takes at most some kilobytes more than the bytes that it was read from.
func (g *Gate) Pass() error {
	if g.left--; g.left > 0 {
		return nil
	}
	return g.ask()
}

func (g *Gate) ask() error {
	g.left = Between
	if g.m == nil {
		return nil
	}
	err := g.m.Check()
	if err != nil {
		g.left = 0
	}
	return err
}

// Append appends v to a list that may get long. It asks m before the list is copied to grow; if m
// does not permit that, v is not appended, and m.Err says so.
func Append[T any](m *Meter, list []T, v T) []T {
	const long = 1 << 10
	if n := len(list); n >= long && n == cap(list) && m.Room(n*int(unsafe.Sizeof(v))*5/4) != nil {
		return list
	}
	return append(list, v)
}

// Reader returns in with what is read of it counted as seen. Reading fails if the file takes too
// much memory.
func (m *Meter) Reader(in io.Reader) io.Reader { return &reader{in, m} }

type reader struct {
	in io.Reader
	m  *Meter
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.m.Saw(n)
	if over := r.m.Check(); over != nil {
		return 0, over
	}
	return n, err
}

// ReaderAt is Reader for a file that is read in any order.
func (m *Meter) ReaderAt(in io.ReaderAt) io.ReaderAt { return &readerAt{in, m} }

type readerAt struct {
	in io.ReaderAt
	m  *Meter
}

func (r *readerAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.in.ReadAt(p, off)
	r.m.Saw(n)
	if over := r.m.Check(); over != nil {
		return 0, over
	}
	return n, err
}
