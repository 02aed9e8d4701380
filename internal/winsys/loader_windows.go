package winsys

import (
	"encoding/binary"

	"golang.org/x/sys/windows"
)

// Offsets in the 64-bit PEB, PEB_LDR_DATA and LDR_DATA_TABLE_ENTRY, which all Windows since 7 have
// there (winternl.h, phnt's ntpebteb.h and ntldr.h).
const (
	pebImageBase = 0x10
	pebLoader    = 0x18

	loaderList = 0x10 // InLoadOrderModuleList

	entryBase  = 0x30
	entryStart = 0x38
	entrySize  = 0x40
	entryPath  = 0x48 // UNICODE_STRING
	entryEnd   = 0x58
)

// maxLoaded bounds the loader's list, which may be circular in any way.
const maxLoaded = 1 << 14

// Loaded is an image in the loader's list. The list is the process's own, which may write anything
// there.
type Loaded struct {
	Base, Size uint64
	Entry      uint64 // address at which it begins, 0: none
	Path       string // such as C:\Windows\System32\ntdll.dll
}

// LoadedImages returns the images in the loader's list, the program first; none if it cannot be
// read, as while the process is being made.
func LoadedImages(process windows.Handle) []Loaded {
	var b [entryEnd]byte
	r := pages{of: process}
	head := loaderHead(process)
	if head == 0 || !r.read(head, b[:8]) {
		return nil
	}
	var out []Loaded
	for at := binary.LittleEndian.Uint64(b[:]); at != 0 && at != head && len(out) < maxLoaded; {
		if !r.read(at, b[:]) {
			break
		}
		at = binary.LittleEndian.Uint64(b[:])
		l := Loaded{
			Base: binary.LittleEndian.Uint64(b[entryBase:]), Size: uint64(binary.LittleEndian.Uint32(b[entrySize:])),
			Entry: binary.LittleEndian.Uint64(b[entryStart:]),
		}
		if l.Base != 0 {
			l.Path = PlainPath(stringOf(r.read, b[entryPath:]))
			out = append(out, l)
		}
	}
	return out
}

// pages reads memory that lies closely together by whole pages: in Wine each read is a conversation
// with another process.
type pages struct {
	of    windows.Handle
	known map[uint64][]byte // by address; nil: it cannot be read
}

func (r *pages) read(addr uint64, p []byte) bool {
	const size = 4096
	for len(p) > 0 {
		base := addr &^ (size - 1)
		page, ok := r.known[base]
		if !ok {
			if page = make([]byte, size); !ReadMemory(r.of, base, page) {
				page = nil
			}
			if r.known == nil {
				r.known = map[uint64][]byte{}
			}
			r.known[base] = page
		}
		if page == nil {
			return false
		}
		n := copy(p, page[addr-base:])
		p, addr = p[n:], addr+uint64(n)
	}
	return true
}

// loaderHead returns the address of the head of the loader's list, 0 if it cannot be read.
func loaderHead(process windows.Handle) uint64 {
	var b [8]byte
	peb := pebOf(process)
	if peb == 0 || !ReadMemory(process, peb+pebLoader, b[:]) {
		return 0
	}
	if ldr := binary.LittleEndian.Uint64(b[:]); ldr != 0 {
		return ldr + loaderList
	}
	return 0
}

// ImageBase returns where a process's program is loaded, 0 if that cannot be read.
func ImageBase(process windows.Handle) uint64 {
	var b [8]byte
	peb := pebOf(process)
	if peb == 0 || !ReadMemory(process, peb+pebImageBase, b[:]) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// Loader tells cheaply, by reading 16 bytes of a process, whether it has loaded images.
type Loader struct {
	head uint64 // 0: not known
	ends [16]byte
}

// Changed reports whether the first or the last entry of the loader's list are other ones than at
// the call before. New images are the last.
func (l *Loader) Changed(process windows.Handle) bool {
	if l.head == 0 {
		if l.head = loaderHead(process); l.head == 0 {
			return false
		}
	}
	var b [16]byte
	if !ReadMemory(process, l.head, b[:]) || b == l.ends {
		return false
	}
	l.ends = b
	return true
}
