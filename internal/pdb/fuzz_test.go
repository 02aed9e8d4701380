package pdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// synthetic returns a database of a few blocks: an info stream and a list of modules with one module.
func synthetic() []byte {
	const block = 512
	le := binary.LittleEndian
	info := make([]byte, 28)
	copy(info[12:], "0123456789abcdef")
	info = append(info, make([]byte, 24)...)
	mod := make([]byte, 4)
	rec := func(kind uint16, data []byte) {
		mod = le.AppendUint16(mod, uint16(len(data)+2))
		mod = append(le.AppendUint16(mod, kind), data...)
	}
	proc := make([]byte, procName)
	le.PutUint32(proc[12:], 0x40)
	le.PutUint32(proc[28:], 0x10)
	le.PutUint16(proc[32:], 1)
	rec(symGlobalProc, append(proc, "name\x00"...))
	rec(symInline, append(make([]byte, 12), 3, 1, 0x0b, 0x23, 0x0c, 2, 4, 0, 0))
	rec(symInlineEnd, nil)
	rec(symEnd, nil)
	symbols := len(mod)
	lines := make([]byte, 12)
	le.PutUint32(lines, 0x10)
	le.PutUint16(lines[4:], 1)
	le.PutUint32(lines[8:], 0x40)
	lines = append(lines, make([]byte, 4)...)
	lines = le.AppendUint32(lines, 1)
	lines = le.AppendUint32(lines, 20)
	lines = le.AppendUint32(lines, 0)
	lines = le.AppendUint32(lines, 33)
	mod = le.AppendUint32(mod, subLines)
	mod = le.AppendUint32(mod, uint32(len(lines)))
	mod = append(mod, lines...)
	dbi := make([]byte, dbiHeader+moduleFixed+4)
	le.PutUint32(dbi[24:], moduleFixed+4)
	le.PutUint32(dbi[28:], 4+contribFixed)
	le.PutUint16(dbi[20:], absent)
	m := dbi[dbiHeader:]
	le.PutUint16(m[34:], 4)
	le.PutUint32(m[36:], uint32(symbols))
	le.PutUint32(m[44:], uint32(len(mod)-symbols))
	c := le.AppendUint32(nil, 0xeffe0000+19970605)
	c = append(c, make([]byte, contribFixed)...)
	le.PutUint16(c[4:], 1)
	le.PutUint32(c[12:], 0x100)
	dbi = append(dbi, c...)
	streams := [][]byte{nil, info, nil, dbi, mod}
	dir := le.AppendUint32(nil, uint32(len(streams)))
	out := make([]byte, 3*block)
	for _, s := range streams {
		dir = le.AppendUint32(dir, uint32(len(s)))
	}
	for _, s := range streams {
		if len(s) > 0 {
			dir = le.AppendUint32(dir, uint32(len(out)/block))
			out = append(append(out, s...), make([]byte, block-len(s))...)
		}
	}
	copy(out, magic)
	le.PutUint32(out[32:], block)
	le.PutUint32(out[40:], uint32(len(out)/block))
	le.PutUint32(out[44:], uint32(len(dir)))
	le.PutUint32(out[52:], 1)
	le.PutUint32(out[block:], 2)
	copy(out[2*block:], dir)
	return out
}

func TestSynthetic(t *testing.T) {
	f, err := Open(bytes.NewReader(synthetic()))
	if err != nil || string(f.GUID[:]) != "0123456789abcdef" {
		t.Fatalf("%v, %v", f, err)
	}
	n := 0
	if err := f.Functions(func(fn Function) {
		if n++; fn != (Function{Segment: 1, Offset: 0x10, Size: 0x40, Name: "name"}) {
			t.Errorf("%+v", fn)
		}
	}); err != nil || n != 1 {
		t.Errorf("%d functions, %v", n, err)
	}
	if p := f.Lines(1, 0x20, nil); len(p) != 1 || p[0].Line != 33 {
		t.Errorf("%+v", p)
	}
	for _, at := range []uint32{0, 0xf, 0x50, 0x100} {
		if p := f.Lines(1, at, nil); len(p) != 0 {
			t.Errorf("%#x: %+v", at, p)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add(synthetic())
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Open(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		_ = d.Functions(func(fn Function) { d.Lines(fn.Segment, fn.Offset, nil) })
		for at := uint32(0); at < 0x80; at += 4 {
			d.Lines(1, at, nil)
		}
	})
}
