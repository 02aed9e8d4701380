package metadata

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// FieldOf finds an instance field in an object's class or its superclasses.
func (h *Heap) FieldOf(oop uint64, name string) (Field, bool) {
	klass, ok := h.KlassOf(oop)
	if !ok {
		return Field{}, false
	}
	return h.FieldOfClass(klass, name)
}

// FieldOfClass is FieldOf for an object of a class.
func (h *Heap) FieldOfClass(klass uint64, name string) (Field, bool) {
	for range MaxSupers {
		if klass == 0 || klass&7 != 0 {
			break
		}
		c, cached := h.classes[klass]
		if !cached {
			c.fields = h.ClassFields(klass)
			c.super, _ = h.vm.Mem.Member(klass, h.vm.Field("Klass::_super"))
			if len(h.classes) < 4096 {
				h.classes[klass] = c
			}
		}
		if f, ok := c.fields[name]; ok {
			return f, true
		}
		klass = c.super
	}
	return Field{}, false
}

// rawField is an entry of a class's field table.
type rawField struct {
	name, signature uint16 // constant pool indexes
	offset          uint32
	static          bool
}

const accStatic = 0x8 // JVM specification, table 4.5-A

// ClassFields reads the instance fields that a class declares itself.
func (h *Heap) ClassFields(klass uint64) map[string]Field {
	t := h.vm.Tables
	var raw []rawField
	if f := t.Field("InstanceKlass::_fieldinfo_stream"); f.OK {
		raw = decodeFieldStream(h.metaArray(klass, f, 1), Unsigned5Bias(h.vm.Major))
	} else {
		count := maxFieldCount
		if n, ok := h.vm.Mem.Member(klass, t.Field("InstanceKlass::_java_fields_count")); ok {
			count = int(n)
		}
		raw = decodeFieldArray(h.metaArray(klass, t.Field("InstanceKlass::_fields"), 2), count)
	}
	pool, ok := h.vm.Mem.Member(klass, t.Field("InstanceKlass::_constants"))
	if !ok {
		return nil
	}
	out := make(map[string]Field)
	read := 0
	for _, f := range raw {
		if f.static || read >= maxClassFields {
			continue
		}
		read++
		var slots [16]byte
		reqs := []target.Read{{Addr: h.PoolSlot(pool, f.name), Buf: slots[:8]}, {Addr: h.PoolSlot(pool, f.signature), Buf: slots[8:]}}
		h.vm.Mem.ReadV(reqs)
		var text [2]string
		h.Symbols([]uint64{vmstructs.Word(slots[:], 0), vmstructs.Word(slots[:], 8)}, text[:])
		if text[0] != "" {
			out[text[0]] = Field{Offset: uint64(f.offset), Signature: text[1]}
		}
	}
	return out
}

// metaArray reads an Array<T> of the VM that a class points to; elements are
// size bytes and follow the 4 bytes of the length.
func (h *Heap) metaArray(klass uint64, f vmstructs.Field, size uint64) []byte {
	at, ok := h.vm.Mem.Member(klass, f)
	if !ok {
		return nil
	}
	n, ok := h.vm.Mem.U32(at)
	if !ok || uint64(n)*size > maxFieldBytes {
		return nil
	}
	b := make([]byte, uint64(n)*size)
	if h.vm.Mem.Reader.ReadAt(b, at+4) != nil {
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
	u := Unsigned5{Data: b, Bias: bias}
	java := u.Next()
	u.Next() // number of fields that the VM injected; they come last
	var out []rawField
	for i := uint32(0); i < java && i < maxFieldCount && !u.Bad; i++ {
		name, sig, offset, access, flags := u.Next(), u.Next(), u.Next(), u.Next(), u.Next()
		if flags&1 != 0 {
			u.Next() // initializer
		}
		if flags&4 != 0 {
			u.Next() // generic signature
		}
		if flags&16 != 0 {
			u.Next() // contention group
		}
		if !u.Bad && name < 1<<16 && sig < 1<<16 {
			out = append(out, rawField{uint16(name), uint16(sig), offset, access&accStatic != 0})
		}
	}
	return out
}
