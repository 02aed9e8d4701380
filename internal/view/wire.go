package view

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
)

// message is sent to the page: numbers as a browser's typed arrays hold them, so that it need not
// read them one by one.
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
	// later means that a large message is made while it is sent: write writes each column, and size
	// is the length of all columns together.
	later bool
	write []func(w io.Writer, b []byte) error
	size  int
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

// put starts a column of a message that is made later: n numbers of width bytes each, of which add
// appends those from from up to to.
func (m *message) put(name, kind string, n, width int, add func(b []byte, from, to int) []byte) {
	m.columns = append(m.columns, column{name, kind, n, m.size})
	pad := -(n * width) & 7
	m.size += n*width + pad
	m.write = append(m.write, func(w io.Writer, b []byte) error {
		const some = piece / 8
		for from := 0; from < n; from += some {
			if _, err := w.Write(add(b[:0], from, min(from+some, n))); err != nil {
				return err
			}
		}
		_, err := w.Write(make([]byte, pad))
		return err
	})
}

// piece is how many bytes of a message that is made later are made at once.
const piece = 64 << 10

func (m *message) pad() {
	for m.body.Len()%8 != 0 {
		m.body.WriteByte(0)
	}
}

func (m *message) u8(name string, n int, at func(i int) uint8) {
	if m.later {
		m.put(name, "u8", n, 1, func(b []byte, from, to int) []byte {
			for i := from; i < to; i++ {
				b = append(b, at(i))
			}
			return b
		})
		return
	}
	m.start(name, "u8", n)
	m.body.Grow(n)
	b := m.body.AvailableBuffer()
	for i := range n {
		b = append(b, at(i))
	}
	m.body.Write(b)
}

func (m *message) u32(name string, n int, at func(i int) uint32) {
	if m.later {
		m.put(name, "u32", n, 4, func(b []byte, from, to int) []byte {
			for i := from; i < to; i++ {
				b = binary.LittleEndian.AppendUint32(b, at(i))
			}
			return b
		})
		return
	}
	m.start(name, "u32", n)
	m.body.Grow(4 * n)
	b := m.body.AvailableBuffer()
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, at(i))
	}
	m.body.Write(b)
}

// i32 adds a column of numbers that may be -1.
func (m *message) i32(name string, n int, at func(i int) int32) {
	m.u32(name, n, func(i int) uint32 { return uint32(at(i)) })
	m.columns[len(m.columns)-1].Type = "i32"
}

func (m *message) f32(name string, list []float32) {
	m.u32(name, len(list), func(i int) uint32 { return math.Float32bits(list[i]) })
	m.columns[len(m.columns)-1].Type = "f32"
}

func (m *message) f64(name string, n int, at func(i int) float64) {
	if m.later {
		m.put(name, "f64", n, 8, func(b []byte, from, to int) []byte {
			for i := from; i < to; i++ {
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(at(i)))
			}
			return b
		})
		return
	}
	m.start(name, "f64", n)
	m.body.Grow(8 * n)
	b := m.body.AvailableBuffer()
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(at(i)))
	}
	m.body.Write(b)
}

// send sends a message that is made while it is sent. The error is only of what comes before the
// first byte: the client may be gone after it.
func (m *message) send(w http.ResponseWriter, head any) error {
	js, err := m.head(head)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", messageType)
	w.Header().Set("Content-Length", strconv.Itoa(len(js)+m.size))
	if _, err := w.Write(js); err != nil {
		return nil
	}
	b := make([]byte, 0, piece)
	for _, write := range m.write {
		if write(w, b) != nil {
			return nil
		}
	}
	return nil
}

const messageType = "application/octet-stream"

// finish returns the whole message, with a head of its own.
func (m *message) finish(head any) ([]byte, error) {
	m.pad()
	js, err := m.head(head)
	if err != nil {
		return nil, err
	}
	return append(append(make([]byte, 0, len(js)+m.body.Len()), js...), m.body.Bytes()...), nil
}

// head returns what comes before the columns.
func (m *message) head(head any) ([]byte, error) {
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
	return append(binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(js)), uint32(len(js))), js...), nil
}
