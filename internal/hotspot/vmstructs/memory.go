package vmstructs

import (
	"bytes"
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/target"
)

// Memory reads single values from the process itself; a method that returns false could not. It is
// used from one goroutine.
type Memory struct {
	Reader target.Reader
	buf    [8]byte
	direct bool // Near reads like all other methods
	// Reads is the number of reads so far, which puts them in order.
	Reads uint64
}

// Read fills b from addr.
func (p *Memory) Read(b []byte, addr uint64) bool {
	p.Reads++
	return p.Reader.ReadAt(b, addr) == nil
}

// U64 reads the 8 bytes at addr.
func (p *Memory) U64(addr uint64) (uint64, bool) {
	if addr == 0 || !p.Read(p.buf[:], addr) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(p.buf[:]), true
}

// U32 reads the 4 bytes at addr.
func (p *Memory) U32(addr uint64) (uint32, bool) {
	if addr == 0 || !p.Read(p.buf[:4], addr) {
		return 0, false
	}
	return binary.LittleEndian.Uint32(p.buf[:]), true
}

// U8 reads the byte at addr.
func (p *Memory) U8(addr uint64) (byte, bool) {
	if addr == 0 || !p.Read(p.buf[:1], addr) {
		return 0, false
	}
	return p.buf[0], true
}

// Static reads the variable that a static field names.
func (p *Memory) Static(f Field) (uint64, bool) {
	if !f.OK || f.Addr == 0 {
		return 0, false
	}
	clear(p.buf[:])
	if !p.Read(p.buf[:f.Width], f.Addr) {
		return 0, false
	}
	return Field{OK: true, Width: f.Width, Signed: f.Signed}.Load(p.buf[:]), true
}

// Member reads a field of the object at addr.
func (p *Memory) Member(addr uint64, f Field) (uint64, bool) {
	if !f.OK || addr == 0 {
		return 0, false
	}
	clear(p.buf[:])
	if !p.Read(p.buf[:f.Width], addr+f.Offset) {
		return 0, false
	}
	return Field{OK: true, Width: f.Width, Signed: f.Signed}.Load(p.buf[:]), true
}

// CString reads a string that ends with a zero byte, of at most max bytes.
func (p *Memory) CString(addr uint64, max int) (string, bool) {
	var s []byte
	for len(s) < max && addr != 0 {
		// Not across a page boundary: the next page may not be mapped.
		n := min(64, 4096-addr&4095)
		b := make([]byte, n)
		if !p.Read(b, addr) {
			return "", false
		}
		for i, c := range b {
			if c == 0 {
				return string(append(s, b[:i]...)), true
			}
		}
		s, addr = append(s, b...), addr+n
	}
	return "", false
}

// CStrings is CString for many addresses. Those that cannot be read are "".
func (p *Memory) CStrings(addrs []uint64, max int) []string {
	const usual = 64
	out, buf := make([]string, len(addrs)), make([]byte, usual*len(addrs))
	reqs := make([]target.Read, len(addrs))
	for i, addr := range addrs {
		n := min(usual, 4096-addr&4095)
		reqs[i] = target.Read{Addr: addr, Buf: buf[usual*i:][:n]}
	}
	p.ReadV(reqs)
	for i, addr := range addrs {
		if end := bytes.IndexByte(reqs[i].Buf, 0); reqs[i].OK && end >= 0 {
			out[i] = string(reqs[i].Buf[:end])
		} else {
			out[i], _ = p.CString(addr, max)
		}
	}
	return out
}

// pageReader is a Reader that keeps whole pages until Invalidate: what a VM allocates at one time,
// such as the methods of a class and their names, lies side by side.
type pageReader interface {
	Bytes(addr uint64, p []byte) bool
	Prefetch(addrs []uint64)
	Invalidate()
}

// Paged reports whether Near reads whole pages, which Expect can announce.
func (p *Memory) Paged() bool {
	_, ok := p.Reader.(pageReader)
	return ok
}

// Near reads a value that lies beside others of its kind. If the process can be read by pages, the
// value is as old as the batch.
func (p *Memory) Near(b []byte, addr uint64) bool {
	if pages, ok := p.Reader.(pageReader); ok && !p.direct && pages.Bytes(addr, b) {
		p.Reads++
		return true
	}
	return p.Read(b, addr)
}

// Younger tries once more what Near could not find. It may have appeared since the pages were read,
// because threads are looked at one after the other and run on in between. If it has, the pages are
// read again.
func (p *Memory) Younger(find func() bool) {
	was := p.direct
	p.direct = true
	found := find()
	if p.direct = was; found {
		p.Renew()
	}
}

// Expect announces what Near will be asked for, so that it is read together.
func (p *Memory) Expect(addrs ...uint64) {
	if pages, ok := p.Reader.(pageReader); ok {
		pages.Prefetch(addrs)
	}
}

// Renew makes Near read everything again.
func (p *Memory) Renew() {
	if pages, ok := p.Reader.(pageReader); ok {
		pages.Invalidate()
	}
}

// ReadV reads many ranges in the order of reqs, with one system call where the reader can, and
// returns how many could be read.
func (p *Memory) ReadV(reqs []target.Read) int {
	p.Reads++
	if v, ok := p.Reader.(interface{ ReadV([]target.Read) int }); ok {
		return v.ReadV(reqs)
	}
	n := 0
	for i := range reqs {
		if reqs[i].OK = p.Reader.ReadAt(reqs[i].Buf, reqs[i].Addr) == nil; reqs[i].OK {
			n++
		}
	}
	return n
}

// Word reads the 8 bytes at off; 0 if b does not hold them.
func Word(b []byte, off uint64) uint64 {
	if off > uint64(len(b)) || uint64(len(b))-off < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(b[off:])
}
