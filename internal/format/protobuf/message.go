// Package protobuf writes messages in the wire format of protocol buffers.
// https://protobuf.dev/programming-guides/encoding/
package protobuf

import "google.golang.org/protobuf/encoding/protowire"

// Message is a message being written. Values of 0 and empty ones are left out where the format
// permits.
type Message []byte

// Uint writes a number.
func (m *Message) Uint(field int, v uint64) {
	if v == 0 {
		return
	}
	*m = protowire.AppendTag(*m, protowire.Number(field), protowire.VarintType)
	*m = protowire.AppendVarint(*m, v)
}

// Fixed64 writes a number in 8 bytes.
func (m *Message) Fixed64(field int, v uint64) {
	if v == 0 {
		return
	}
	*m = protowire.AppendTag(*m, protowire.Number(field), protowire.Fixed64Type)
	*m = protowire.AppendFixed64(*m, v)
}

// Flag writes a boolean.
func (m *Message) Flag(field int, v bool) {
	if v {
		m.Uint(field, 1)
	}
}

// Bytes writes b as a string, a packed list or a nested message, even if it is empty.
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

// Head writes the head of a field of n bytes, which the caller then writes.
func (m *Message) Head(field, n int) {
	*m = protowire.AppendTag(*m, protowire.Number(field), protowire.BytesType)
	*m = protowire.AppendVarint(*m, uint64(n))
}
