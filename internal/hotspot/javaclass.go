package hotspot

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// fieldOf finds an instance field in an object's class or its superclasses.
func (vm *VM) fieldOf(oop uint64, name string) (javaField, bool) {
	klass, ok := vm.klassOf(oop)
	if !ok {
		return javaField{}, false
	}
	return vm.fieldOfClass(klass, name)
}

// fieldOfClass is fieldOf for an object of a class.
func (vm *VM) fieldOfClass(klass uint64, name string) (javaField, bool) {
	for range maxSupers {
		if klass == 0 || klass&7 != 0 {
			break
		}
		c, cached := vm.heap.classes[klass]
		if !cached {
			c.fields = vm.classFields(klass)
			c.super, _ = vm.Mem.Member(klass, vm.Field("Klass::_super"))
			if len(vm.heap.classes) < 4096 {
				vm.heap.classes[klass] = c
			}
		}
		if f, ok := c.fields[name]; ok {
			return f, true
		}
		klass = c.super
	}
	return javaField{}, false
}

// rawField is an entry of a class's field table.
type rawField struct {
	name, signature uint16 // constant pool indexes
	offset          uint32
	static          bool
}

const accStatic = 0x8 // JVM specification, table 4.5-A

// classFields reads the instance fields that a class declares itself.
func (vm *VM) classFields(klass uint64) map[string]javaField {
	t := vm.Tables
	var raw []rawField
	if f := t.Field("InstanceKlass::_fieldinfo_stream"); f.OK {
		raw = decodeFieldStream(vm.metaArray(klass, f, 1), unsigned5Bias(vm.Major))
	} else {
		count := maxFieldCount
		if n, ok := vm.Mem.Member(klass, t.Field("InstanceKlass::_java_fields_count")); ok {
			count = int(n)
		}
		raw = decodeFieldArray(vm.metaArray(klass, t.Field("InstanceKlass::_fields"), 2), count)
	}
	pool, ok := vm.Mem.Member(klass, t.Field("InstanceKlass::_constants"))
	if !ok {
		return nil
	}
	out := make(map[string]javaField)
	read := 0
	for _, f := range raw {
		if f.static || read >= maxClassFields {
			continue
		}
		read++
		var slots [16]byte
		reqs := []target.Read{{Addr: vm.poolSlot(pool, f.name), Buf: slots[:8]}, {Addr: vm.poolSlot(pool, f.signature), Buf: slots[8:]}}
		vm.Mem.ReadV(reqs)
		var text [2]string
		vm.symbols([]uint64{word(slots[:], 0), word(slots[:], 8)}, text[:])
		if text[0] != "" {
			out[text[0]] = javaField{offset: uint64(f.offset), signature: text[1]}
		}
	}
	return out
}

// metaArray reads an Array<T> of the VM that a class points to; elements are
// size bytes and follow the 4 bytes of the length.
func (vm *VM) metaArray(klass uint64, f vmstructs.Field, size uint64) []byte {
	at, ok := vm.Mem.Member(klass, f)
	if !ok {
		return nil
	}
	n, ok := vm.Mem.U32(at)
	if !ok || uint64(n)*size > maxFieldBytes {
		return nil
	}
	b := make([]byte, uint64(n)*size)
	if vm.Mem.Reader.ReadAt(b, at+4) != nil {
		return nil
	}
	return b
}

// decodeFieldArray decodes InstanceKlass::_fields (8 to 20): six 16-bit values per field. The last
// two are its offset and, in the lowest two bits, a tag, which is 1 if the offset is set (17
// share/oops/fieldInfo.hpp).
func decodeFieldArray(b []byte, count int) []rawField {
	var out []rawField
	for ; len(b) >= 12 && count > 0 && len(out) < maxFieldCount; b, count = b[12:], count-1 {
		u2 := func(i int) uint16 { return binary.LittleEndian.Uint16(b[2*i:]) }
		packed := uint32(u2(5))<<16 | uint32(u2(4))
		if packed&3 != 1 {
			continue
		}
		out = append(out, rawField{name: u2(1), signature: u2(2), offset: packed >> 2, static: u2(0)&accStatic != 0})
	}
	return out
}

// decodeFieldStream decodes InstanceKlass::_fieldinfo_stream (21 and later; 25
// share/oops/fieldInfo.hpp).
func decodeFieldStream(b []byte, bias uint32) []rawField {
	u := unsigned5{data: b, bias: bias}
	java := u.next()
	u.next() // number of fields that the VM injected; they come last
	var out []rawField
	for i := uint32(0); i < java && i < maxFieldCount && !u.bad; i++ {
		name, sig, offset, access, flags := u.next(), u.next(), u.next(), u.next(), u.next()
		if flags&1 != 0 {
			u.next() // initializer
		}
		if flags&4 != 0 {
			u.next() // generic signature
		}
		if flags&16 != 0 {
			u.next() // contention group
		}
		if !u.bad && name < 1<<16 && sig < 1<<16 {
			out = append(out, rawField{uint16(name), uint16(sig), offset, access&accStatic != 0})
		}
	}
	return out
}
