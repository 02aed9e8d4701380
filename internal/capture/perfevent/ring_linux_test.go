package perfevent

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// fakeRing returns a ring over plain memory, as hostile as the fuzzer wants.
func fakeRing(data []byte, tail, head uint64) *Ring {
	return &Ring{meta: &unix.PerfEventMmapPage{Data_head: head, Data_tail: tail}, data: data, pos: tail}
}

func FuzzRing(f *testing.F) {
	f.Add(make([]byte, 4096), uint64(0), uint64(4096))
	f.Fuzz(func(t *testing.T, seed []byte, tail, head uint64) {
		data := make([]byte, 4096)
		copy(data, seed)
		r := fakeRing(data, tail, head)
		var scratch [1 << 16]byte
		var rec Record
		r.Begin()
		n := 0
		for s, ok := r.Next(); ok; s, ok = r.Next() {
			if n++; n > 4096/headerSize {
				t.Fatal("more records than fit")
			}
			_ = r.Time(s)
			if b := r.Bytes(s, &scratch); len(b) != int(s.Size) {
				t.Fatalf("%d bytes of %d", len(b), s.Size)
			} else {
				_ = testLayout.Parse(b, &rec)
			}
		}
		r.Release()
		if r.meta.Data_tail != head {
			t.Errorf("the tail is at %d, not at %d", r.meta.Data_tail, head)
		}
	})
}

func TestRingGoesAround(t *testing.T) {
	data := make([]byte, 4096)
	record := func(at uint64, size uint16) {
		binary.LittleEndian.PutUint32(data[at&4095:], RecordLost)
		binary.LittleEndian.PutUint16(data[(at+6)&4095:], size)
	}
	start := uint64(4096*5 - 16)
	record(start, 40)
	record(start+40, 48)
	data[(start+40+24)&4095] = 77 // beyond the ring's end
	r := fakeRing(data, start, start+88)
	r.Begin()
	var scratch [1 << 16]byte
	var sizes []int
	for s, ok := r.Next(); ok; s, ok = r.Next() {
		b := r.Bytes(s, &scratch)
		sizes = append(sizes, len(b))
		if len(sizes) == 2 && b[24] != 77 {
			t.Error("the second record's bytes are not its own")
		}
	}
	if len(sizes) != 2 || sizes[0] != 40 || sizes[1] != 48 {
		t.Errorf("records of %v bytes", sizes)
	}
}
