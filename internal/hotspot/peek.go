package hotspot

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/target"
)

// peek reads single values from the process itself. It is used from one goroutine.
type peek struct {
	r      target.Reader
	buf    [8]byte
	direct bool // near reads like all other methods
}

func (p *peek) u64(addr uint64) (uint64, bool) {
	if addr == 0 || p.r.ReadAt(p.buf[:], addr) != nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(p.buf[:]), true
}

func (p *peek) u32(addr uint64) (uint32, bool) {
	if addr == 0 || p.r.ReadAt(p.buf[:4], addr) != nil {
		return 0, false
	}
	return binary.LittleEndian.Uint32(p.buf[:]), true
}

func (p *peek) u8(addr uint64) (byte, bool) {
	if addr == 0 || p.r.ReadAt(p.buf[:1], addr) != nil {
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
	if p.r.ReadAt(p.buf[:f.width], f.addr) != nil {
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
	if p.r.ReadAt(p.buf[:f.width], addr+f.offset) != nil {
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
		if p.r.ReadAt(b, addr) != nil {
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
		return true
	}
	return p.r.ReadAt(b, addr) == nil
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

// readV reads many ranges, with one system call where the reader can.
func (p *peek) readV(reqs []target.Read) int {
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
