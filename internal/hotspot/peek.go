package hotspot

import (
	"bytes"
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/target"
)

// peek reads single values from the process itself. It is used from one goroutine.
type peek struct {
	r      target.Reader
	buf    [8]byte
	direct bool // near reads like all other methods
	// reads is the number of reads so far, which puts them in order.
	reads uint64
}

// read fills b from addr.
func (p *peek) read(b []byte, addr uint64) bool {
	p.reads++
	return p.r.ReadAt(b, addr) == nil
}

func (p *peek) u64(addr uint64) (uint64, bool) {
	if addr == 0 || !p.read(p.buf[:], addr) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(p.buf[:]), true
}

func (p *peek) u32(addr uint64) (uint32, bool) {
	if addr == 0 || !p.read(p.buf[:4], addr) {
		return 0, false
	}
	return binary.LittleEndian.Uint32(p.buf[:]), true
}

func (p *peek) u8(addr uint64) (byte, bool) {
	if addr == 0 || !p.read(p.buf[:1], addr) {
		return 0, false
	}
	return p.buf[0], true
}

// static reads the variable that a static field names.
func (p *peek) static(f field) (uint64, bool) {
	if !f.ok || f.addr == 0 {
		return 0, false
	}
	clear(p.buf[:])
	if !p.read(p.buf[:f.width], f.addr) {
		return 0, false
	}
	return field{ok: true, width: f.width, signed: f.signed}.load(p.buf[:]), true
}

// member reads a field of the object at addr.
func (p *peek) member(addr uint64, f field) (uint64, bool) {
	if !f.ok || addr == 0 {
		return 0, false
	}
	clear(p.buf[:])
	if !p.read(p.buf[:f.width], addr+f.offset) {
		return 0, false
	}
	return field{ok: true, width: f.width, signed: f.signed}.load(p.buf[:]), true
}

// cstring reads a string that ends with a zero byte, of at most max bytes.
func (p *peek) cstring(addr uint64, max int) (string, bool) {
	var s []byte
	for len(s) < max && addr != 0 {
		// Not across a page boundary: the next page may not be mapped.
		n := min(64, 4096-addr&4095)
		b := make([]byte, n)
		if !p.read(b, addr) {
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

// cstrings is cstring for many addresses. Those that cannot be read are "".
func (p *peek) cstrings(addrs []uint64, max int) []string {
	const usual = 64
	out, buf := make([]string, len(addrs)), make([]byte, usual*len(addrs))
	reqs := make([]target.Read, len(addrs))
	for i, addr := range addrs {
		n := min(usual, 4096-addr&4095)
		reqs[i] = target.Read{Addr: addr, Buf: buf[usual*i:][:n]}
	}
	p.readV(reqs)
	for i, addr := range addrs {
		if end := bytes.IndexByte(reqs[i].Buf, 0); reqs[i].OK && end >= 0 {
			out[i] = string(reqs[i].Buf[:end])
		} else {
			out[i], _ = p.cstring(addr, max)
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

// near reads a value that lies beside others of its kind. If the process can be read by pages, the
// value is as old as the batch.
func (p *peek) near(b []byte, addr uint64) bool {
	if pages, ok := p.r.(pageReader); ok && !p.direct && pages.Bytes(addr, b) {
		p.reads++
		return true
	}
	return p.read(b, addr)
}

// younger tries once more what near could not find. It may have appeared since the pages were read,
// because threads are looked at one after the other and run on in between. If it has, the pages are
// read again.
func (p *peek) younger(find func() bool) {
	was := p.direct
	p.direct = true
	found := find()
	if p.direct = was; found {
		p.renew()
	}
}

// expect announces what near will be asked for, so that it is read together.
func (p *peek) expect(addrs ...uint64) {
	if pages, ok := p.r.(pageReader); ok {
		pages.Prefetch(addrs)
	}
}

// renew makes near read everything again.
func (p *peek) renew() {
	if pages, ok := p.r.(pageReader); ok {
		pages.Invalidate()
	}
}

// readV reads many ranges in the order of reqs, with one system call where the reader can.
func (p *peek) readV(reqs []target.Read) int {
	p.reads++
	if v, ok := p.r.(interface{ ReadV([]target.Read) int }); ok {
		return v.ReadV(reqs)
	}
	n := 0
	for i := range reqs {
		if reqs[i].OK = p.r.ReadAt(reqs[i].Buf, reqs[i].Addr) == nil; reqs[i].OK {
			n++
		}
	}
	return n
}
