package target

import "encoding/binary"

const (
	pageShift = 12
	pageSize  = 1 << pageShift
	pageMask  = pageSize - 1

	cacheWays = 4
	cacheSets = 256
	// cachePages bounds the cache: 1,024 pages, 4 MiB. Pages are allocated when they are used,
	// first 2, then up to slabPages at a time.
	cachePages = cacheWays * cacheSets
	slabPages  = 32
)

// pageCache keeps copies of whole pages until the next Invalidate. It also remembers that a page
// cannot be read, so that a walk over bad memory does not cost a system call per word. It is
// set-associative with a fixed number of pages: no lookup allocates once its slab is there.
type pageCache struct {
	epoch uint64 // a slot is valid if its epoch is this one; starts at 0 with no slots valid
	last  pageTag
	bytes *[pageSize]byte // of last
	*pageSlots
	free  []*[pageSize]byte // allocated, not used yet
	slab  int               // pages allocated last
	pages int               // pages allocated in all
	batch []Read            // for Prefetch

	hits, misses uint64
}

// pageSlots take 33 KiB, which many processes never need.
type pageSlots struct {
	tags [cacheSets][cacheWays]pageTag
	next [cacheSets]uint8 // the way to be replaced next
	slot [cacheSets][cacheWays]*[pageSize]byte
}

// pageTag identifies the page in a slot. valid is epoch+1 so that the zero tag means an empty slot.
type pageTag struct {
	page  uint64 // address >> pageShift
	valid uint64
	bad   bool // the page could not be read
}

// setOf returns the set for a page: neighbouring pages go to neighbouring sets, and heaps that are
// aligned to large powers of two do not collide.
func setOf(page uint64) uint64 {
	return (page ^ page>>8 ^ page>>17) % cacheSets
}

// Invalidate forgets what is cached. It must be called whenever the process may have run on: at
// each end of a batch of samples.
func (m *Memory) Invalidate() {
	c := &m.pages
	c.epoch++
	c.bytes = nil
	m.checkAlive()
}

// Forget drops the cache and frees its memory: at most 4 MiB, which is allocated again as it is
// needed.
func (m *Memory) Forget() {
	c := &m.pages
	c.pageSlots, c.bytes, c.free, c.slab, c.pages, c.batch = nil, nil, nil, 0, 0, nil
}

// Held returns how many bytes the cache takes.
func (m *Memory) Held() int { return m.pages.pages * pageSize }

// page returns the cached copy of a page, reading it if necessary; nil if it cannot be read.
func (m *Memory) page(page uint64) *[pageSize]byte {
	c := &m.pages
	if c.pageSlots == nil {
		c.pageSlots = new(pageSlots)
	}
	set := setOf(page)
	for w := range c.tags[set] {
		if t := &c.tags[set][w]; t.page == page && t.valid == c.epoch+1 {
			if t.bad {
				return nil
			}
			c.hits++
			if m.trace == nil {
				c.last, c.bytes = *t, c.slot[set][w]
			}
			return c.slot[set][w]
		}
	}
	c.misses++
	w := c.victim(set)
	buf := c.slot[set][w]
	t := &c.tags[set][w]
	t.valid = 0
	ok := page < 1<<(64-pageShift) && m.read(buf[:], page<<pageShift)
	*t = pageTag{page: page, valid: c.epoch + 1, bad: !ok}
	if !ok {
		return nil
	}
	if m.trace == nil { // else each Word and Bytes comes here, and is reported
		c.last, c.bytes = *t, buf
	}
	return buf
}

// victim chooses a way of the set to fill and ensures that it has memory.
func (c *pageCache) victim(set uint64) uint64 {
	w := uint64(c.next[set])
	for i := range uint64(cacheWays) { // a stale way rather than a live one
		if c.tags[set][i].valid != c.epoch+1 {
			w = i
			break
		}
	}
	c.next[set] = uint8((w + 1) % cacheWays)
	if c.bytes == c.slot[set][w] {
		c.bytes = nil
	}
	if c.slot[set][w] == nil {
		if len(c.free) == 0 {
			c.slab = min(max(2*c.slab, 2), slabPages)
			slab := make([][pageSize]byte, c.slab)
			c.pages += c.slab
			for i := range slab {
				c.free = append(c.free, &slab[i])
			}
		}
		c.slot[set][w] = c.free[len(c.free)-1]
		c.free = c.free[:len(c.free)-1]
	}
	return w
}

// Word reads the 8 bytes at addr through the cache; false if they cannot be read.
func (m *Memory) Word(addr uint64) (uint64, bool) {
	off := addr & pageMask
	if off > pageSize-8 {
		return m.straddle(addr)
	}
	c := &m.pages
	buf := c.bytes
	if buf == nil || c.last.page != addr>>pageShift {
		if buf = m.page(addr >> pageShift); buf == nil {
			return 0, false
		}
		if m.trace != nil {
			m.trace(addr, buf[off:off+8], true)
		}
	}
	return binary.LittleEndian.Uint64(buf[off : off+8]), true
}

// straddle is Word for an address whose 8 bytes lie in two pages.
func (m *Memory) straddle(addr uint64) (uint64, bool) {
	var b [8]byte
	if !m.Bytes(addr, b[:]) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// Bytes fills p from addr through the cache; false unless all of it could be read.
func (m *Memory) Bytes(addr uint64, p []byte) bool {
	if addr+uint64(len(p)) < addr {
		return false
	}
	c := &m.pages
	for len(p) > 0 {
		buf := c.bytes
		if buf == nil || c.last.page != addr>>pageShift {
			if buf = m.page(addr >> pageShift); buf == nil {
				return false
			}
		}
		n := copy(p, buf[addr&pageMask:])
		if m.trace != nil {
			m.trace(addr, p[:n], true)
		}
		p = p[n:]
		addr += uint64(n)
	}
	return true
}

// Prefetch reads the pages of the addresses that are not cached yet, with one
// system call for up to 1,024 of them. It is a hint: nothing is reported.
func (m *Memory) Prefetch(addrs []uint64) {
	c := &m.pages
	if m.trace != nil {
		return
	}
	if c.pageSlots == nil {
		c.pageSlots = new(pageSlots)
	}
	c.batch = c.batch[:0]
	for _, addr := range addrs {
		if len(c.batch) == cachePages/2 {
			break
		}
		page := addr >> pageShift
		if page == 0 {
			continue // null and addresses near it: never a program's, and they would end the call
		}
		set := setOf(page)
		found := false
		for w := range c.tags[set] {
			if t := &c.tags[set][w]; t.page == page && t.valid == c.epoch+1 {
				found = true
				break
			}
		}
		if found {
			continue
		}
		w := c.victim(set)
		// The tag is set now so that the same page is not requested twice. A page that is evicted
		// again by a later one of this call is handled below.
		c.tags[set][w] = pageTag{page: page, valid: c.epoch + 1, bad: true}
		c.batch = append(c.batch, Read{Addr: page << pageShift, Buf: c.slot[set][w][:]})
	}
	if len(c.batch) == 0 {
		return
	}
	m.ReadV(c.batch)
	for i := range c.batch {
		r := &c.batch[i]
		page := r.Addr >> pageShift
		set := setOf(page)
		for w := range c.tags[set] {
			t := &c.tags[set][w]
			if t.page == page && t.valid == c.epoch+1 && &c.slot[set][w][0] == &r.Buf[0] {
				t.bad = !r.OK
			}
		}
		*r = Read{}
	}
}
