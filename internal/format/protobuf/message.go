// Package protobuf writes messages in the wire format of protocol buffers.
// https://protobuf.dev/programming-guides/encoding/
package protobuf

import "encoding/binary"

// The wire types that are used.
const (
	Varint = 0
	I64    = 1
	Bytes  = 2
	I32    = 5
)

// Message is a message being written. What is 0 or empty is left out where the
// format lets it be.
type Message []byte

// Uint writes a number.
func (m *Message) Uint(field int, v uint64) {
	if v == 0 {
		return
	}
	*m = binary.AppendUvarint(*m, uint64(field)<<3|Varint)
	*m = binary.AppendUvarint(*m, v)
}

// Fixed64 writes a number in 8 bytes.
func (m *Message) Fixed64(field int, v uint64) {
	if v == 0 {
		return
	}
	*m = binary.AppendUvarint(*m, uint64(field)<<3|I64)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

// Flag writes a truth.
func (m *Message) Flag(field int, v bool) {
	if v {
		m.Uint(field, 1)
	}
}

// Bytes writes b as a string, a packed list or a message inside this one, also if
// it is empty.
func (m *Message) Bytes(field int, b []byte) {
	m.Head(field, len(b))
	*m = append(*m, b...)
}

// Text writes a string; one that is empty is left out.
func (m *Message) Text(field int, s string) {
	if s == "" {
		return
	}
	m.Head(field, len(s))
	*m = append(*m, s...)
}

// Head writes what comes before n bytes of a field, which the caller then writes.
func (m *Message) Head(field, n int) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3|Bytes)
	*m = binary.AppendUvarint(*m, uint64(n))
}
