package emulate

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/capture"
)

// memory is a process's memory as a trace sees it: what the trace has stored, then the copy of the
// stack, then the memory as it is now.
type memory struct {
	space Space
	stack []byte
	at    uint64 // the address of stack

	near    *Nearby
	missed  []uint64         // words that change, and were not copied
	regions []capture.Region // other memory that was copied with the stack
	reads   []read           // of memory that was not copied and may change

	words [wordSlots]word
	round uint32
	used  int
}

// word is 8 bytes, at a multiple of 8, parts of which the trace has stored.
type word struct {
	addr   uint64
	round  uint32
	stored uint8 // mask of the bytes that were stored
	known  uint8 // of those
	late   bool
	v      uint64
}

// read is a word that was read after the copy was made.
type read struct{ addr, v uint64 }

// maxReads bounds the words that a trace reads late.
const maxReads = 256

// Bounds of what a trace stores.
const (
	wordBits  = 9
	wordSlots = 1 << wordBits
	maxWords  = wordSlots * 3 / 4
)

// begin forgets what was stored.
func (m *memory) begin(snap *capture.Snapshot, space Space, near *Nearby) {
	m.space, m.stack, m.at, m.used = space, snap.Stack, snap.StackAddr, 0
	m.regions, m.reads = snap.Regions, m.reads[:0]
	m.near, m.missed = near, m.missed[:0]
	if m.round++; m.round == 0 {
		m.words = [wordSlots]word{}
		m.round = 1
	}
}

// find returns the slot of a word, or the one in which it is to be put.
func (m *memory) find(addr uint64) *word {
	for i := addr * 0x9e3779b97f4a7c15 >> (64 - wordBits); ; i = (i + 1) % wordSlots {
		if w := &m.words[i]; w.round != m.round || w.addr == addr {
			return w
		}
	}
}

// word reads the 8 bytes at a multiple of 8.
func (m *memory) word(addr uint64) value {
	w := m.find(addr)
	stored := w.round == m.round
	if stored && w.stored == 0xff {
		return value{w.v, w.known, w.late}
	}
	v := m.base(addr)
	if stored {
		b := bitsOf(w.stored)
		v.v = v.v&^b | w.v&b
		v.known = v.known&^w.stored | w.known
		v.late = v.late || w.late
	}
	return v
}

// base reads 8 bytes that the trace has not stored.
func (m *memory) base(addr uint64) value {
	if off := addr - m.at; addr >= m.at && off+8 <= uint64(len(m.stack)) {
		return value{binary.LittleEndian.Uint64(m.stack[off:]), 0xff, false}
	}
	for i := range m.regions {
		r := &m.regions[i]
		if off := addr - r.Addr; addr >= r.Addr && off+8 <= uint64(len(r.Bytes)) {
			return value{binary.LittleEndian.Uint64(r.Bytes[off:]), 0xff, false}
		}
	}
	if _, ok := m.near.changes[addr]; ok {
		if len(m.missed) < maxReads {
			m.missed = append(m.missed, addr)
		}
		return value{late: true}
	}
	var b [8]byte
	if !m.space.Bytes(addr, b[:]) {
		return value{}
	}
	v := value{binary.LittleEndian.Uint64(b[:]), 0xff, !m.space.Fixed(addr)}
	if v.late {
		if len(m.reads) == maxReads {
			return value{}
		}
		m.reads = append(m.reads, read{addr, v.v})
	}
	// The copy of the stack may begin or end within a word.
	for i := range uint64(8) {
		if off := addr + i - m.at; addr+i >= m.at && off < uint64(len(m.stack)) {
			v.v = v.v&^(0xff<<(8*i)) | uint64(m.stack[off])<<(8*i)
		}
	}
	return v
}

// bitsOf returns the bits of the bytes in a mask.
func bitsOf(k uint8) (b uint64) {
	for i := range 8 {
		if k>>i&1 != 0 {
			b |= 0xff << (8 * i)
		}
	}
	return b
}

// load reads up to 8 bytes, zero-extended.
func (m *memory) load(addr uint64, size uint8) value {
	off := addr & 7
	v := m.word(addr &^ 7)
	v.v >>= 8 * off
	v.known >>= off
	if off+uint64(size) > 8 {
		w := m.word(addr&^7 + 8)
		v.v |= w.v << (8 * (8 - off))
		v.known |= w.known << (8 - off)
		v.late = v.late || w.late
	}
	return v.extend(size)
}

// store writes up to 8 bytes; false if the trace has stored too much.
func (m *memory) store(addr uint64, size uint8, v value) bool {
	if size == 0 || size > 8 {
		return false
	}
	off := addr & 7
	k := uint16(bytesMask(size)) << off
	if !m.put(addr&^7, v.v<<(8*off), uint8(k), v.known<<off, v.late) {
		return false
	}
	if k>>8 == 0 {
		return true
	}
	return m.put(addr&^7+8, v.v>>(8*(8-off)), uint8(k>>8), v.known>>(8-off), v.late)
}

// put writes the bytes of a mask in a word.
func (m *memory) put(addr, v uint64, stored, known uint8, late bool) bool {
	w := m.find(addr)
	if w.round != m.round {
		if m.used == maxWords {
			return false
		}
		m.used++
		*w = word{addr: addr, round: m.round}
	}
	b := bitsOf(stored)
	w.v = w.v&^b | v&b
	w.stored |= stored
	w.known = w.known&^stored | known&stored
	w.late = w.late && w.stored != stored || late
	return true
}
