package dwarfline

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/hostinfo"
)

// stored returns a section that is read in pieces.
func stored(b []byte) Section {
	return Stored(io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))))
}

// FuzzData feeds the reader arbitrary sections. (Package symbol fuzzes it with
// damaged real programs.)
func FuzzData(f *testing.F) {
	// One unit of DWARF 4: a root with a line table and one inlined call.
	abbrev := []byte{
		1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0x10, 0x17, 0x1b, 0x08, 0, 0,
		2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0,
		3, 0x1d, 0, 0x31, 0x13, 0x11, 0x01, 0x12, 0x06, 0x58, 0x0b, 0x59, 0x0b, 0, 0, 0}
	info := []byte{0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8,
		1, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, '/', 'd', 0,
		2, 'f', 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0,
		3, 31, 0, 0, 0, 4, 0x10, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 7, 0, 0}
	info[0] = byte(len(info) - 4)
	line := []byte{0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 'a', 0, 0, 0, 0, 0,
		0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x14, 2, 0x20, 0, 1, 1}
	line[0] = byte(len(line) - 4)
	line[6] = 25
	f.Add(info, abbrev, line, []byte("x\x00"), []byte{0}, uint64(0x1005))
	f.Fuzz(func(t *testing.T, info, abbrev, line, str, other []byte, addr uint64) {
		start := hostinfo.OwnCPU() // not the elapsed time, which other processes use too
		content := func(name string) []byte {
			switch name {
			case "info":
				return info
			case "abbrev":
				return abbrev
			case "line":
				return line
			case "str", "line_str":
				return str
			}
			return other
		}
		d, err := Open(binary.LittleEndian, func(name string) (Section, error) { return Bytes(content(name)), nil }, nil)
		in, failed := Open(binary.LittleEndian, func(name string) (Section, error) { return stored(content(name)), nil }, nil)
		if (err == nil) != (failed == nil) {
			t.Fatalf("from memory %v, from a file %v", err, failed)
		}
		if err != nil {
			return
		}
		ask := func(addr uint64) {
			if a, b := d.Lookup(addr, nil), in.Lookup(addr, nil); !slices.Equal(a, b) {
				t.Fatalf("%#x: from memory %+v, from a file %+v", addr, a, b)
			}
		}
		ask(addr)
		for _, s := range d.index[:min(len(d.index), 64)] {
			ask(s.lo)
			ask(s.hi - 1)
		}
		if took := hostinfo.OwnCPU() - start; took > 3*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestSmallUnit checks that the fuzz test's seed is decoded as intended.
func TestSmallUnit(t *testing.T) {
	abbrev := []byte{1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, 2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0,
		3, 0x1d, 0, 0x31, 0x13, 0x11, 0x01, 0x12, 0x06, 0, 0, 4, 0x2e, 0, 0x03, 0x08, 0, 0, 0}
	info := []byte{0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8,
		1, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0,
		4, 'i', 'n', 0,
		2, 'f', 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0,
		3, 24, 0, 0, 0, 4, 0x10, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0}
	info[0] = byte(len(info) - 4)
	d, err := Open(binary.LittleEndian, func(name string) (Section, error) {
		return Bytes(map[string][]byte{"info": info, "abbrev": abbrev}[name]), nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := d.Lookup(0x1005, nil)
	if len(got) != 2 || got[0].Function != "in" || got[1].Function != "f" {
		t.Errorf("inside the call: %+v", got)
	}
	got = d.Lookup(0x1010, nil)
	if len(got) != 0 && (len(got) != 1 || got[0].Function != "f") {
		t.Errorf("after the call: %+v", got)
	}
	if got = d.Lookup(0x1020, nil); len(got) != 0 {
		t.Errorf("after the function: %+v", got)
	}
}
