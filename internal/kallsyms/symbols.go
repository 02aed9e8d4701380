// Package kallsyms names the functions of the running kernel: those of its image,
// of its modules, and of BPF programs that it has compiled.
package kallsyms

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
)

// ErrUnsupported is wrapped by the error on systems whose kernel publishes no
// symbols.
var ErrUnsupported = errors.New("not supported here")

// ErrRestricted is wrapped by the error of a kernel that hides its addresses
// from this user.
var ErrRestricted = errors.New("kernel addresses are hidden")

// RestrictedError says which setting hides the kernel's addresses. It wraps
// ErrRestricted.
type RestrictedError struct {
	KptrRestrict string // kernel.kptr_restrict, "" if it could not be read
	Paranoid     string // kernel.perf_event_paranoid, "" if it could not be read
}

// Error returns what to do.
func (e *RestrictedError) Error() string {
	// kallsyms_show_value in kernel/ksyms_common.c (kernel/kallsyms.c before 6.3)
	// decides: 2 hides always, 1 needs CAP_SYSLOG, and so does 0 unless
	// perf_event_paranoid is at most 1.
	if e.KptrRestrict == "2" {
		return "kernel symbols have no addresses (kernel.kptr_restrict=2): set it to 1 and run with CAP_SYSLOG, or set it to 0"
	}
	return fmt.Sprintf("kernel symbols have no addresses (kernel.kptr_restrict=%s, kernel.perf_event_paranoid=%s): run with CAP_SYSLOG, or set them to 0 and 1", e.KptrRestrict, e.Paranoid)
}

// Unwrap returns ErrRestricted.
func (e *RestrictedError) Unwrap() error { return ErrRestricted }

const (
	// maxSymbols bounds what is kept; a distribution's kernel with all modules that a machine loads
	// has about 250,000.
	maxSymbols = 4 << 20
	maxNames   = 256 << 20 // bytes of names
	// maxLine bounds a line; KSYM_NAME_LEN is 512 since Linux 6.1.
	maxLine = 4096
	// maxGap bounds a function that no other symbol of its module follows, in bytes.
	maxGap = 64 << 10
)

// image is the module name of the kernel itself.
const image = "[kernel]"

// Symbols are the kernel's symbols in compact form: parallel arrays sorted by address and one
// string of names. They do not change.
type Symbols struct {
	addrs   []uint64
	names   []uint32 // where the name begins in blob, noName for symbols that are not code
	module  []uint16 // index into modules
	blob    []byte   // names, each ended by a zero byte
	modules []string
}

// Len returns the number of addresses with a symbol.
func (s *Symbols) Len() int { return len(s.addrs) }

// entry is a symbol while parsing.
type entry struct {
	addr   uint64
	name   uint32
	module uint16
	rank   uint8 // the entry with the lowest rank at an address is kept
}

// noCode is the rank of data: it ends the function before it and names nothing.
const noCode = 200

// Parse parses the text of /proc/kallsyms. Malformed lines are skipped. The error wraps
// ErrRestricted if all addresses are 0.
func Parse(r io.Reader) (*Symbols, error) {
	s := &Symbols{modules: []string{image}}
	index := map[string]uint16{"": 0}
	entries := make([]entry, 0, 128<<10) // about what a kernel has
	s.blob = make([]byte, 0, 3<<20)
	zero := 0
	in := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		if err == bufio.ErrBufferFull { // no symbol is that long
			for err == bufio.ErrBufferFull {
				_, err = in.ReadSlice('\n')
			}
			line = nil
		}
		if addr, kind, name, module, ok := parseLine(line); ok {
			if addr == 0 {
				zero++
			} else {
				m, seen := index[string(module)]
				if !seen && len(s.modules) < 1<<16-1 {
					m = uint16(len(s.modules))
					index[string(module)] = m
					s.modules = append(s.modules, moduleName(string(module)))
				}
				e := entry{addr: addr, module: m, rank: rank(kind, name), name: uint32(len(s.blob))}
				if e.rank != noCode {
					s.blob = append(append(s.blob, name...), 0)
				}
				entries = append(entries, e)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(entries) >= maxSymbols || len(s.blob) >= maxNames {
			break
		}
	}
	if len(entries) == 0 {
		if zero > 0 {
			return nil, ErrRestricted
		}
		return nil, errors.New("it holds no symbols")
	}
	s.fill(entries)
	return s, nil
}

// fill sorts the entries and keeps the best one of each address.
func (s *Symbols) fill(entries []entry) {
	slices.SortStableFunc(entries, func(a, b entry) int {
		switch {
		case a.addr != b.addr:
			if a.addr < b.addr {
				return -1
			}
			return 1
		default:
			return int(a.rank) - int(b.rank)
		}
	})
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return a.addr == b.addr })
	// One of several consecutive entries that are not code is enough: it ends a function.
	entries = slices.CompactFunc(entries, func(a, b entry) bool {
		return a.rank == noCode && b.rank == noCode && a.module == b.module
	})
	s.addrs = make([]uint64, len(entries))
	s.names = make([]uint32, len(entries))
	s.module = make([]uint16, len(entries))
	for i, e := range entries {
		s.addrs[i], s.names[i], s.module[i] = e.addr, e.name, e.module
		if e.rank == noCode {
			s.names[i] = noName
		}
	}
	s.blob = slices.Clip(s.blob)
}

// noName marks symbols that are not code.
const noName = 1<<32 - 1

// parseLine splits "address kind name [\t[module]]".
func parseLine(b []byte) (addr uint64, kind byte, name, module []byte, ok bool) {
	b = bytes.TrimSuffix(b, []byte{'\n'})
	n := 0
	for ; n < len(b) && n < 17; n++ {
		c := b[n]
		switch {
		case c >= '0' && c <= '9':
			addr = addr<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			addr = addr<<4 | uint64(c-'a'+10)
		default:
			goto digits
		}
	}
digits:
	if n == 0 || n > 16 || len(b) < n+4 || b[n] != ' ' || b[n+2] != ' ' {
		return 0, 0, nil, nil, false
	}
	kind, b = b[n+1], b[n+3:]
	name, module, _ = bytes.Cut(b, []byte{'\t'})
	module = bytes.TrimRight(module, " ")
	if len(name) == 0 || bytes.IndexByte(name, 0) >= 0 {
		return 0, 0, nil, nil, false
	}
	return addr, kind, name, module, true
}

// moduleName returns the display name of the text in brackets after a symbol. The kernel's own
// generated code is listed as if it were modules.
func moduleName(m string) string {
	if strings.HasPrefix(m, "[__builtin__") {
		return image
	}
	return m
}

// rank orders the names of one address: global functions first, markers of the linker last.
func rank(kind byte, name []byte) uint8 {
	var r uint8
	switch kind {
	case 'T':
	case 't':
		r = 20
	case 'W', 'w':
		r = 40
	default:
		return noCode
	}
	if marker(name) {
		r += 100
	}
	for n := 0; n < len(name) && n < 10 && name[n] == '_'; n++ {
		r++
	}
	return r
}

// marker reports whether the name marks the begin or end of a part of the kernel, or is a second
// name of a function made by the build.
func marker(name []byte) bool {
	switch string(name) {
	case "_text", "_stext", "_etext", "_sinittext", "_einittext":
		return true
	}
	return bytes.HasPrefix(name, []byte("__pi_")) || bytes.HasPrefix(name, []byte("__cfi_")) ||
		bytes.HasPrefix(name, []byte("__")) && (bytes.HasSuffix(name, []byte("_start")) || bytes.HasSuffix(name, []byte("_end")))
}

// find returns the index of the symbol that addr belongs to, -1 if there is none.
func (s *Symbols) find(addr uint64) int {
	i := sort.Search(len(s.addrs), func(i int) bool { return s.addrs[i] > addr }) - 1
	if i < 0 || s.names[i] == noName {
		return -1
	}
	// Between the last symbol of a module and the next module there is a hole whose begin is not
	// known.
	if (i+1 == len(s.addrs) || s.module[i+1] != s.module[i]) && addr-s.addrs[i] >= maxGap {
		return -1
	}
	return i
}

// name returns the name of symbol i.
func (s *Symbols) name(i int) string {
	b := s.blob[s.names[i]:]
	if n := bytes.IndexByte(b, 0); n >= 0 {
		b = b[:n]
	}
	return string(b)
}

// Lookup names the function at addr, with its module ("[kernel]", "[ext4]",
// "[bpf]") and how far into it addr lies.
func (s *Symbols) Lookup(addr uint64) (name, module string, offset uint64, ok bool) {
	i := s.find(addr)
	if i < 0 {
		return "", "", 0, false
	}
	return s.name(i), s.modules[s.module[i]], addr - s.addrs[i], true
}

// Address returns the address of a function by its exact name.
func (s *Symbols) Address(name string) (uint64, bool) {
	want := []byte(name)
	for i, at := range s.names {
		if at == noName {
			continue
		}
		b := s.blob[at:]
		if len(b) > len(want) && b[len(want)] == 0 && bytes.Equal(b[:len(want)], want) {
			return s.addrs[i], true
		}
	}
	return 0, false
}
