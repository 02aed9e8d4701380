package hotspot

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// threadName reads the name of a thread's object; ok is false unless the object
// points back to the thread.
func (vm *VM) threadName(t javaThread) (string, bool) {
	vm.heap.refresh(&vm.Mem)
	oop, ok := vm.handle(t.object)
	if !ok {
		return "", false
	}
	f, ok := vm.fieldOf(oop, "eetop")
	if !ok {
		return "", false
	}
	if back, ok := vm.Mem.U64(oop + f.offset); !ok || back != t.addr {
		return "", false
	}
	f, ok = vm.fieldOf(oop, "name")
	if !ok {
		return "", false
	}
	// JDK 8 before about update 40 held the name as char[].
	at, ok := vm.reference(oop + f.offset)
	if !ok {
		return "", false
	}
	if f.signature == "[C" {
		return vm.charArray(at, false)
	}
	return vm.javaString(at)
}

// javaString reads a java.lang.String.
func (vm *VM) javaString(oop uint64) (string, bool) {
	f, ok := vm.fieldOf(oop, "value")
	if !ok {
		return "", false
	}
	array, ok := vm.reference(oop + f.offset)
	if !ok {
		return "", false
	}
	latin := false
	if f.signature == "[B" {
		c, ok := vm.fieldOf(oop, "coder")
		if !ok {
			return "", false
		}
		coder, ok := vm.Mem.U8(oop + c.offset)
		if !ok || coder > 1 {
			return "", false
		}
		latin = coder == 0
	}
	return vm.charArray(array, latin)
}

// charArray reads an array that holds Latin-1 as bytes, or UTF-16 as bytes or chars.
func (vm *VM) charArray(array uint64, latin bool) (string, bool) {
	n, ok := vm.Mem.U32(array + vm.heap.arrayLength())
	if !ok || n > maxNameLength {
		return "", false
	}
	b := make([]byte, vm.charBytes(n, latin))
	if len(b) > 0 && vm.Mem.Reader.ReadAt(b, array+vm.arrayData()) != nil {
		return "", false
	}
	return decodeChars(b, latin), true
}

// maxNameLength is longer than any array that holds a name.
const maxNameLength = 1 << 24

// charBytes returns how many bytes of an array of that length are read.
func (vm *VM) charBytes(length uint32, latin bool) uint64 {
	bytes := uint64(length)
	if !latin && vm.Major == 8 {
		bytes *= 2 // a char[]
	}
	return min(bytes, 2*maxNameChars)
}

// decodeChars decodes Latin-1 or UTF-16.
func decodeChars(b []byte, latin bool) string {
	if latin {
		r := make([]rune, len(b))
		for i, c := range b {
			r[i] = rune(c)
		}
		return printable(string(r))
	}
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return printable(string(utf16.Decode(u)))
}

// printable replaces control characters: names go to terminals and files.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, s)
}
