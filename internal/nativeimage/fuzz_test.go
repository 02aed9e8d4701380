package nativeimage

import (
	"encoding/binary"
	"testing"
)

// fakeMemory is some bytes from an address on.
type fakeMemory struct {
	at uint64
	b  []byte
}

func (m fakeMemory) bytes(p []byte, addr uint64) bool {
	off := addr - m.at
	if off > uint64(len(m.b)) || uint64(len(m.b))-off < uint64(len(p)) {
		return false
	}
	copy(p, m.b[off:])
	return true
}

func (m fakeMemory) Bytes(addr uint64, p []byte) bool { return m.bytes(p, addr) }

func (m fakeMemory) Word(addr uint64) (uint64, bool) { return number(m, addr, 8) }

const (
	fakeHeap = 0x100000
	fakeText = 0x10000
)

// fakeImage returns an image heap with tables of 512 bytes of code: two methods, the second of which
// calls at 0x110 and has a method inlined there.
func fakeImage() []byte {
	b := make([]byte, 0x800)
	put := func(at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }
	array := func(at int, hub uint32, content []byte, n int) {
		binary.LittleEndian.PutUint32(b[at:], hub)
		binary.LittleEndian.PutUint32(b[at+12:], uint32(n))
		copy(b[at+16:], content)
	}
	refs := func(list ...uint64) []byte {
		var out []byte
		for _, r := range list {
			out = binary.LittleEndian.AppendUint64(out, r)
		}
		return out
	}
	text := func(at, chars int, s string) {
		array(chars, 0x40, []byte(s), len(s))
		binary.LittleEndian.PutUint32(b[at:], 0x80)
		put(at+8, uint64(chars))
	}
	// A method of 16 bytes of frame, one of 32; the index has an entry for each 256 bytes.
	encodings := []byte{
		0xc1, 0xff, 0x11, 0, 0, 0, 0, // 0: begins, its default frames at 0
		0x00, 0x01, // 255: nothing
		0xc1, 0x10, 0x21, 0, 0, 0, 0, // 256: begins
		0x90, 0x00, 3, 0, 0, 0, // 272: returns from a call, frames at 3
	}
	frames := []byte{0, 7, 16} // method 0, line and index; -3 more ends the list
	frames[1] = 9              // -5: the last, line 2
	frames = append(frames, 2, 20, 24, 0, 17, 16)
	put(0x100+0, 0xc0)
	put(0x108, fakeText)
	put(0x110, 512)
	put(0x118, 512)
	put(0x128, 512)
	copy(b[0x130:], refs(0, 0x200, 0x220, 0x200, 0x260, 0, 0x2a0, 0x2d0, 0, 0x300))
	array(0x200, 0x40, []byte{0, 0, 0, 0, 9, 0, 0, 0}, 8)
	array(0x220, 0x40, encodings, len(encodings))
	array(0x260, 0x40, frames, len(frames))
	array(0x2a0, 0x48, refs(0x400), 1)
	array(0x2d0, 0x48, refs(0x500, 0x520), 2)
	array(0x300, 0x40, []byte{0, 0, 0, 0, 0, 0, 1, 0}, 8)
	put(0x400, 0xc0)
	put(0x408, 0x540)
	put(0x410, 0x5c0)
	text(0x500, 0x600, "run")
	text(0x520, 0x620, "call")
	text(0x540, 0x640, "a.Main")
	text(0x5c0, 0x680, "Main.java")
	return b
}

// TestFakeImage reads an image whose content is known to the last byte.
func TestFakeImage(t *testing.T) {
	b := fakeImage()
	im, ok := find(fakeMemory{fakeHeap, b}, span{fakeHeap, fakeHeap + uint64(len(b))}, span{fakeText, fakeText + 0x1000})
	if !ok {
		t.Fatal("no tables are found")
	}
	if im.format == nil {
		t.Fatal("the frames are not understood")
	}
	e, exact, ok := im.table.seek(272)
	if !ok || !exact || e.bytes() != 32 || e.kind != plainInfo {
		t.Errorf("the return address has the entry %+v, exact %v", e, exact)
	}
	if _, exact, _ := im.table.seek(273); exact {
		t.Error("an address that no call returns to has an entry")
	}
	list, ok := im.decode(e.info, nil)
	if !ok || len(list) != 2 {
		t.Fatalf("the frames are %+v", list)
	}
	for i, want := range []string{"a.Main.call Main.java:7", "a.Main.run Main.java:6"} {
		f := list[i]
		got := im.text(textClass, f.class) + "." + im.text(textName, f.name) + " " + im.text(textFile, f.class) + ":" + string(rune('0'+f.line))
		if got != want {
			t.Errorf("frame %d is %s, not %s", i, got, want)
		}
	}
	// One more byte of code than the table describes.
	if bad := append([]byte(nil), b...); true {
		bad[0x110], bad[0x118], bad[0x128] = 1, 1, 1
		if _, ok := find(fakeMemory{fakeHeap, bad}, span{fakeHeap, fakeHeap + uint64(len(bad))}, span{fakeText, fakeText + 0x1000}); ok {
			t.Error("tables that do not fit the code are accepted")
		}
	}
}

// FuzzHeap checks that no image heap makes its reader fail, run on or take much memory.
func FuzzHeap(f *testing.F) {
	f.Add(fakeImage(), uint16(272))
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		heap := span{fakeHeap, fakeHeap + uint64(len(b))}
		im, ok := find(fakeMemory{fakeHeap, b}, heap, span{fakeText, fakeText + 0x10000})
		if !ok {
			return
		}
		if n := len(im.table.index) + len(im.table.encodings) + len(im.frames.info) + len(im.frames.methods); n > 4*len(b) {
			t.Errorf("%d bytes were read of %d", n, len(b))
		}
		rel := uint64(at) % im.table.size
		vm := &VM{}
		vm.reset()
		for _, exact := range []bool{true, false} {
			list, _ := vm.at(im, rel, exact)
			if len(list) > maxInlined {
				t.Errorf("%d frames at one place", len(list))
			}
			for _, g := range list {
				vm.text(im, textClass, g.class)
				vm.text(im, textFile, g.class)
				vm.text(im, textName, g.name)
			}
		}
	})
}

// FuzzFrames checks that no description of frames makes its reader run on.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{2, 20, 24, 0, 17, 16}, uint8(0))
	f.Add([]byte{0, 20, 1, 3, 0, 17, 16}, uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, format uint8) {
		fs := frames{info: b, format: &frameFormats[int(format)%len(frameFormats)], classes: objects{0, 8}, names: objects{0, 8}, methods: make([]byte, 32), stride: 4}
		fs.short.class, fs.short.name = true, true
		if list, ok := fs.decode(0, nil); ok && (len(list) == 0 || len(list) > maxInlined) {
			t.Errorf("%d frames", len(list))
		}
	})
}

// FuzzLeaf checks that no code makes its reader run on, or find a frame that is not there.
func FuzzLeaf(f *testing.F) {
	f.Add([]byte{0x48, 0x83, 0xec, 0x18, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x18, 0xc3}, uint16(4), uint8(33))
	f.Add([]byte{0x48, 0x8d, 0x05, 0x01, 0x00, 0x00, 0x00, 0xff, 0xe0}, uint16(7), uint8(33))
	f.Fuzz(func(t *testing.T, code []byte, at uint16, frame uint8) {
		if len(code) == 0 {
			return
		}
		m := &mapped{known: &known{image: &image{table: codeTable{size: uint64(len(code)), piece: 256, methods: []method{{0, int32(frame)}}}}}, code: span{fakeText, fakeText + uint64(len(code))}}
		var r codeReader
		l := r.leaf(fakeMemory{fakeText, append(code, make([]byte, 16)...)}, m, fakeText+uint64(at)%uint64(len(code)))
		if l.known && l.depth > uint32(frame) {
			t.Errorf("a frame of %d bytes has its return address at %d", frame, l.depth)
		}
	})
}
