package target

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// Reader reads memory. Memory implements it; so do tests and saved memory images.
type Reader interface {
	// ReadAt fills p from addr completely or returns an error that wraps ErrMemory.
	ReadAt(p []byte, addr uint64) error
}

// Read is one range to be read by Memory.ReadV.
type Read struct {
	Addr uint64
	Buf  []byte // filled from Addr
	OK   bool   // all of Buf was filled
}

// Memory reads a process's memory. Reads never fault: reading memory that is not mapped is an error
// or false.
//
// ReadAt, ReadV and Uint64, Uint32 and Uint16 read from the process each time and may be called
// from several goroutines. Word, Bytes, Prefetch and Invalidate use a cache of pages and must be
// called from one goroutine; their results are as old as the last Invalidate.
type Memory struct {
	pages pageCache

	// fallBack reads from the process's files; nil: there is no fallback.
	fallBack func(p []byte, addr uint64) bool
	trace    func(addr uint64, b []byte, ok bool) // see Trace

	mu      sync.Mutex // guards what follows
	src     access
	one     [1]Read // for a single read, so that none is allocated
	number8 [8]byte
}

// access is how an operating system reads another process's memory.
type access interface {
	// readV fills the requests that it can and sets OK of each.
	readV(reqs []Read)
	// gone reports whether the process has ended, so that nothing may be read under its id any
	// more.
	gone() bool
	// released reports whether the process has no memory any more, as far as can be told.
	released() bool
	close()
}

func newMemory(src access) *Memory { return &Memory{src: src} }

// ReadAt fills p from addr. It fills all of p or returns an error that wraps ErrMemory (the content
// of p is then undefined).
func (m *Memory) ReadAt(p []byte, addr uint64) error {
	ok := m.read(p, addr)
	if m.trace != nil {
		m.trace(addr, p, ok)
	}
	if !ok {
		return fmt.Errorf("read %d bytes at %#x: %w", len(p), addr, ErrMemory)
	}
	return nil
}

// FallBack makes f be called for memory that cannot be read, above all after the process has ended:
// the content of a file was in the process's memory too, if it was mapped read-only. f fills all of
// p or returns false, and is called from the goroutine that reads. Uint64, Uint32 and Uint16 do not
// call it.
func (m *Memory) FallBack(f func(p []byte, addr uint64) bool) { m.fallBack = f }

// Trace makes f be called for everything that is read, with exactly the bytes that somebody wanted:
// pages that are read around them are not reported. Reads are slower then. f is called from the
// goroutines that read, and may not keep b.
func (m *Memory) Trace(f func(addr uint64, b []byte, ok bool)) {
	m.trace = f
	m.pages.bytes = nil
}

// read is ReadAt without allocating an error.
func (m *Memory) read(p []byte, addr uint64) bool {
	if len(p) == 0 {
		return true
	}
	if addr+uint64(len(p)) < addr {
		return false
	}
	m.mu.Lock()
	m.one[0] = Read{Addr: addr, Buf: p}
	m.src.readV(m.one[:])
	ok := m.one[0].OK
	m.one[0] = Read{}
	m.mu.Unlock()
	if !ok && m.fallBack != nil {
		ok = m.fallBack(p, addr)
	}
	return ok
}

// ReadV reads many ranges with as few system calls as possible, sets OK of each and returns how
// many were read completely.
func (m *Memory) ReadV(reqs []Read) int {
	m.mu.Lock()
	m.src.readV(reqs)
	m.mu.Unlock()
	n := 0
	if m.trace != nil {
		defer func() {
			for i := range reqs {
				m.trace(reqs[i].Addr, reqs[i].Buf, reqs[i].OK)
			}
		}()
	}
	for i := range reqs {
		if r := &reqs[i]; !r.OK && m.fallBack != nil {
			r.OK = m.fallBack(r.Buf, r.Addr)
		}
		if reqs[i].OK {
			n++
		}
	}
	return n
}

// Uint64 reads 8 bytes, little-endian, from the process itself.
func (m *Memory) Uint64(addr uint64) (uint64, error) { return m.number(addr, 8) }

// Uint32 reads 4 bytes, little-endian, from the process itself.
func (m *Memory) Uint32(addr uint64) (uint32, error) {
	v, err := m.number(addr, 4)
	return uint32(v), err
}

// Uint16 reads 2 bytes, little-endian, from the process itself.
func (m *Memory) Uint16(addr uint64) (uint16, error) {
	v, err := m.number(addr, 2)
	return uint16(v), err
}

// number reads size bytes as a little-endian number. It allocates nothing
// unless it fails.
func (m *Memory) number(addr uint64, size int) (uint64, error) {
	m.mu.Lock()
	m.number8 = [8]byte{}
	m.one[0] = Read{Addr: addr, Buf: m.number8[:size]}
	ok := addr+uint64(size) > addr
	if ok {
		m.src.readV(m.one[:])
		ok = m.one[0].OK
	}
	v := binary.LittleEndian.Uint64(m.number8[:])
	m.mu.Unlock()
	if m.trace != nil {
		m.trace(addr, binary.LittleEndian.AppendUint64(nil, v)[:size], ok)
	}
	if !ok {
		return 0, fmt.Errorf("read %d bytes at %#x: %w", size, addr, ErrMemory)
	}
	return v, nil
}

// Released reports whether the process has no memory any more: it is ending, although it may not
// count as ended yet.
func (m *Memory) Released() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.src.released()
}

func (m *Memory) close() {
	m.mu.Lock()
	m.src.close()
	m.mu.Unlock()
}

// checkAlive stops all reading once the process has ended, because its id may then be another
// process's.
func (m *Memory) checkAlive() {
	m.mu.Lock()
	if m.src.gone() {
		m.src.close()
		m.src = nowhere{}
	}
	m.mu.Unlock()
}

// nowhere is the memory of a process that has ended.
type nowhere struct{}

func (nowhere) readV(reqs []Read) {
	for i := range reqs {
		reqs[i].OK = len(reqs[i].Buf) == 0
	}
}
func (nowhere) gone() bool     { return false }
func (nowhere) released() bool { return true }
func (nowhere) close()         {}
