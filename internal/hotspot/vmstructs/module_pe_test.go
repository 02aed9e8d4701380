package vmstructs

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/candid-profiler/candid/internal/target"
)

// loaded is memory that begins at an address.
type loaded struct {
	base uint64
	data []byte
}

// ReadAt implements target.Reader.
func (m loaded) ReadAt(p []byte, addr uint64) error {
	if off := addr - m.base; addr >= m.base && off <= uint64(len(m.data)) && uint64(len(p)) <= uint64(len(m.data))-off {
		copy(p, m.data[off:])
		return nil
	}
	return target.ErrMemory
}

func FuzzPE(f *testing.F) {
	f.Add(peImage())
	f.Fuzz(func(t *testing.T, data []byte) {
		const page = 4096
		data = append(data, make([]byte, -len(data)&(page-1))...)
		peSymbols(loaded{0x10000, data}, 0x10000)
	})
}

// peImage is a DLL, as loaded, that exports gHotSpotVMStructs and another symbol.
func peImage() []byte {
	b := make([]byte, 0x400)
	le := binary.LittleEndian
	copy(b, "MZ")
	le.PutUint32(b[0x3c:], 0x80)
	copy(b[0x80:], "PE\x00\x00")
	le.PutUint16(b[0x80+24:], 0x20b)
	le.PutUint32(b[0x80+24+112:], 0x200)
	dir := b[0x200:]
	le.PutUint32(dir[20:], 2)
	le.PutUint32(dir[24:], 2)
	le.PutUint32(dir[28:], 0x240)
	le.PutUint32(dir[32:], 0x250)
	le.PutUint32(dir[36:], 0x260)
	le.PutUint32(b[0x240:], 0x1234)
	le.PutUint32(b[0x244:], 0x5678)
	le.PutUint32(b[0x250:], 0x300)
	le.PutUint32(b[0x254:], 0x320)
	le.PutUint16(b[0x260:], 0)
	le.PutUint16(b[0x262:], 1)
	copy(b[0x300:], "JNI_CreateJavaVM")
	copy(b[0x320:], "gHotSpotVMStructs")
	return b
}

func TestPESymbols(t *testing.T) {
	m := loaded{0x7ff000, append(peImage(), make([]byte, 0xc00)...)}
	got, err := peSymbols(m, 0x7ff000)
	if err != nil || len(got) != 1 || got["gHotSpotVMStructs"] != 0x7ff000+0x5678 {
		t.Errorf("%#x, %v", got, err)
	}
	if _, err := peSymbols(loaded{}, 0x1000); !errors.Is(err, ErrNotHotSpot) {
		t.Errorf("no image: %v", err)
	}
}
