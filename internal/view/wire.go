package view

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
)

// message is what the page is sent: numbers as a browser's typed arrays hold
// them, so that it need not read them one by one.
//
//	uint32   length of the JSON that follows, little endian
//	JSON     {"head": …, "columns": [{"name", "type", "length", "at"}, …]}
//	columns  little endian; each begins at its "at", counted from the beginning
//	         of the columns, which is the next multiple of 8 after the JSON
//
// Types are u8, u32, i32, f32 and f64.
type message struct {
	columns []column
	body    bytes.Buffer
}

type column struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Length int    `json:"length"`
	At     int    `json:"at"` // bytes
}

func (m *message) start(name, kind string, n int) {
	m.pad()
	m.columns = append(m.columns, column{name, kind, n, m.body.Len()})
}

func (m *message) pad() {
	for m.body.Len()%8 != 0 {
		m.body.WriteByte(0)
	}
}

func (m *message) u8(name string, n int, at func(i int) uint8) {
	m.start(name, "u8", n)
	m.body.Grow(n)
	b := m.body.AvailableBuffer()
	for i := range n {
		b = append(b, at(i))
	}
	m.body.Write(b)
}

func (m *message) u32(name string, n int, at func(i int) uint32) {
	m.start(name, "u32", n)
	m.body.Grow(4 * n)
	b := m.body.AvailableBuffer()
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, at(i))
	}
	m.body.Write(b)
}

// i32 is a column of numbers that may be -1.
func (m *message) i32(name string, n int, at func(i int) int32) {
	m.u32(name, n, func(i int) uint32 { return uint32(at(i)) })
	m.columns[len(m.columns)-1].Type = "i32"
}

func (m *message) f32(name string, list []float32) {
	m.u32(name, len(list), func(i int) uint32 { return math.Float32bits(list[i]) })
	m.columns[len(m.columns)-1].Type = "f32"
}

func (m *message) f64(name string, n int, at func(i int) float64) {
	m.start(name, "f64", n)
	m.body.Grow(8 * n)
	b := m.body.AvailableBuffer()
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(at(i)))
	}
	m.body.Write(b)
}

// finish gives the whole message, with a head of its own.
func (m *message) finish(head any) ([]byte, error) {
	m.pad()
	js, err := json.Marshal(struct {
		Head    any      `json:"head"`
		Columns []column `json:"columns"`
	}{head, m.columns})
	if err != nil {
		return nil, fmt.Errorf("encode for the page: %w", err)
	}
	for (4+len(js))%8 != 0 {
		js = append(js, ' ')
	}
	out := make([]byte, 0, 4+len(js)+m.body.Len())
	out = binary.LittleEndian.AppendUint32(out, uint32(len(js)))
	out = append(out, js...)
	return append(out, m.body.Bytes()...), nil
}
