// Package hsperfdata reads what a HotSpot virtual machine counts for jstat, in a piece of its memory
// that it calls PerfData: collections, compilations, classes, threads, and properties as text. All
// memory of the target is taken as hostile.
package hsperfdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
)

// Counters are a VM's counters as last read. They are used from one goroutine.
type Counters struct {
	vm    *vmstructs.VM
	start uint64 // of the memory
	raw   []byte
	at    map[string]counter
	used  uint32 // of raw, when names were last read
}

// counter is where a value lies in the memory.
type counter struct {
	off, size uint32
	text      bool
}

// maxCounters bounds the memory of counters, in bytes: a VM has 32 KB unless it is told otherwise
// (-XX:PerfDataMemorySize).
const maxCounters = 1 << 20

// The head of the memory and of each entry (share/runtime/perfMemory.hpp:
// PerfDataPrologue and PerfDataEntry, the same from 8 on).
const (
	counterMagic     = 0xcafec0c0 // big-endian
	prologueSize     = 32
	prologueUsed     = 8
	prologueEntries  = 24 // where the entries begin
	prologueCount    = 28
	entrySize        = 20
	entryName        = 4
	entryVector      = 8
	entryType        = 12 // one letter, as in signatures
	entryData        = 16
	mostCounterNames = 1 << 13
)

// Open returns the VM's counters. The error wraps vmstructs.ErrNotReady if there are none yet; with
// -XX:-UsePerfData there never are.
func Open(vm *vmstructs.VM) (*Counters, error) {
	start, ok := vm.Mem.Static(vm.Field("PerfMemory::_start"))
	if !ok {
		return nil, errors.New("the VM does not publish where its counters are")
	}
	if !vm.FlagSet("UsePerfData") {
		return nil, errors.New("the VM counts nothing: -XX:-UsePerfData")
	}
	c := &Counters{vm: vm, start: start}
	if start == 0 || !c.Read() {
		return nil, fmt.Errorf("the VM's counters are not set up: %w", vmstructs.ErrNotReady)
	}
	return c, nil
}

// Read reads all values again; false if that is not possible.
func (c *Counters) Read() bool {
	r := c.vm.Mem.Reader
	if len(c.raw) < prologueSize {
		c.raw = make([]byte, prologueSize)
	}
	le := binary.LittleEndian
	// The part that was in use before and the part in use now, mostly with one read.
	for range 2 {
		if r.ReadAt(c.raw, c.start) != nil || binary.BigEndian.Uint32(c.raw) != counterMagic {
			return false
		}
		used := le.Uint32(c.raw[prologueUsed:])
		if used < prologueSize || used > maxCounters {
			return false
		}
		if int(used) <= len(c.raw) {
			if used != c.used {
				c.used = used
				c.names()
			}
			return true
		}
		c.raw = make([]byte, used)
	}
	return false
}

// Span is a range of the counters' memory that holds some of them.
type Span struct{ off, end uint32 }

// SpanOf returns the smallest range that holds the named counters, as far as they exist.
func (c *Counters) SpanOf(names ...string) Span {
	s := Span{off: c.used}
	for _, name := range names {
		if k, ok := c.at[name]; ok {
			s.off, s.end = min(s.off, k.off), max(s.end, k.off+k.size)
		}
	}
	return s
}

// ReadSpan reads the values in a range again, as Read does all; false if that is not possible.
func (c *Counters) ReadSpan(s Span) bool {
	if s.off >= s.end {
		return true
	}
	return int(s.end) <= len(c.raw) && c.vm.Mem.Reader.ReadAt(c.raw[s.off:s.end], c.start+uint64(s.off)) == nil
}

// names finds the position of each value.
func (c *Counters) names() {
	c.at = map[string]counter{}
	le := binary.LittleEndian
	off, n := le.Uint32(c.raw[prologueEntries:]), min(le.Uint32(c.raw[prologueCount:]), mostCounterNames)
	for range n {
		if off > c.used || c.used-off < entrySize {
			return
		}
		e := c.raw[off:c.used]
		size, name, data, vector := le.Uint32(e), le.Uint32(e[entryName:]), le.Uint32(e[entryData:]), le.Uint32(e[entryVector:])
		if size < entrySize || int64(size) > int64(len(e)) || name >= size || data >= size {
			return
		}
		e = e[:size]
		text, _, ok := bytes.Cut(e[name:], []byte{0})
		switch {
		case !ok:
		case e[entryType] == 'J' && vector == 0 && size-data >= 8:
			c.at[string(text)] = counter{off: off + data, size: 8}
		case e[entryType] == 'B':
			c.at[string(text)] = counter{off: off + data, size: min(vector, size-data), text: true}
		}
		off += size
	}
}

// Number returns a counter as it was last read; false if there is none.
func (c *Counters) Number(name string) (int64, bool) {
	k, ok := c.at[name]
	if !ok || k.text || int(k.off+k.size) > len(c.raw) {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(c.raw[k.off:])), true
}

// Text returns a text as it was last read, "" if there is none.
func (c *Counters) Text(name string) string {
	k, ok := c.at[name]
	if !ok || !k.text || int(k.off+k.size) > len(c.raw) {
		return ""
	}
	text, _, _ := bytes.Cut(c.raw[k.off:k.off+k.size], []byte{0})
	return string(text)
}

// Each visits the texts whose names begin with a prefix, with the prefix cut off the name.
func (c *Counters) Each(prefix string, visit func(name, text string)) {
	for name := range c.at {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			visit(name[len(prefix):], c.Text(name))
		}
	}
}
