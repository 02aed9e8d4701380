package bpfcopy

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// kernelRing writes records as the kernel does, into memory of its own.
type kernelRing struct {
	ring
	head uint64
}

func newKernelRing(size int) *kernelRing {
	k := &kernelRing{}
	k.consumer, k.producer = make([]byte, 4096), make([]byte, 4096+size)
	k.data, k.size = k.producer[4096:], uint64(size)
	return k
}

// put writes a record of n bytes of value b; false if there is no room.
func (k *kernelRing) put(n int, b byte, flags uint32) bool {
	room := uint64(n+ringHeader+7) &^ 7
	if k.head-binary.LittleEndian.Uint64(k.consumer)+room > k.size {
		return false
	}
	binary.LittleEndian.PutUint32(k.data[k.head&(k.size-1):], uint32(n)|flags)
	for i := range uint64(n) {
		k.data[(k.head+ringHeader+i)&(k.size-1)] = b
	}
	k.head += room
	binary.LittleEndian.PutUint64(k.producer, k.head)
	return true
}

// Records of every length come out whole, also those that cross the end.
func TestRingSplit(t *testing.T) {
	k := newKernelRing(1 << 12)
	next, want, split := 0, 0, 0
	for want < 3000 {
		for k.put(next*7%900, byte(next), 0) {
			if next++; next%5 == 0 {
				k.put(next%64, 0xff, ringDiscard)
			}
		}
		for again := true; again; again = k.more() {
			k.begin()
			var pass [][]byte
			first := want
			for b := k.next(); b != nil; b = k.next() {
				pass = append(pass, b)
				want++
			}
			// Records stay unchanged until they are released.
			for i, b := range pass {
				if n := first + i; !bytes.Equal(b, bytes.Repeat([]byte{byte(n)}, n*7%900)) {
					t.Fatalf("record %d is %d bytes of %x", n, len(b), b[:min(8, len(b))])
				}
				if len(b) > 0 && len(k.split) > 0 && &b[0] == &k.split[0] {
					split++
				}
			}
			k.release()
		}
	}
	if split < 20 {
		t.Errorf("only %d records went over the end", split)
	}
	k.put(100, 1, ringBusy)
	k.put(100, 2, 0)
	k.begin()
	if b := k.next(); b != nil {
		t.Error("a record that is being written was given")
	}
}
