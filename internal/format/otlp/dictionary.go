package otlp

import (
	"bufio"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/candid-profiler/candid/internal/format/protobuf"
)

// table is a table of the dictionary: its messages, each once. The first is the zero value, so that
// 0 means none.
type table struct {
	field int
	out   protobuf.Message
	known map[string]uint64
	n     uint64
}

func newTable(field int) table {
	t := table{field: field, known: map[string]uint64{}}
	t.put(nil)
	return t
}

// put returns the index of a message.
func (t *table) put(m protobuf.Message) uint64 {
	i, ok := t.known[string(m)]
	if !ok {
		i = t.n
		t.known[string(m)] = i
		t.append(m)
	}
	return i
}

// append adds a message that is known to be new.
func (t *table) append(m protobuf.Message) uint64 {
	t.n++
	t.out.Bytes(t.field, m)
	return t.n - 1
}

// dictionary holds what samples of all profiles refer to.
type dictionary struct {
	mappings, locations, functions, strings, attributes, stacks table
}

func newDictionary() *dictionary {
	return &dictionary{newTable(dictMapping), newTable(dictLocation), newTable(dictFunction), newTable(dictString), newTable(dictAttribute), newTable(dictStack)}
}

// str returns the index of a string.
func (d *dictionary) str(s string) uint64 {
	return d.strings.put(protobuf.Message(strings.ToValidUTF8(s, "\uFFFD")))
}

// attribute returns the index of a key with a text, or with a number if the text is "".
func (d *dictionary) attribute(key, text string, number int64) uint64 {
	var m protobuf.Message
	m.Uint(keyValueKey, d.str(key))
	m.Bytes(keyValueValue, value(text, number))
	return d.attributes.put(m)
}

// value returns an AnyValue.
func value(text string, number int64) protobuf.Message {
	var m protobuf.Message
	if text != "" {
		m.Text(anyString, strings.ToValidUTF8(text, "\uFFFD"))
	} else {
		// A member of a oneof is written even if it is 0.
		m = protowire.AppendTag(m, anyInt, protowire.VarintType)
		m = protowire.AppendVarint(m, uint64(number))
	}
	return m
}

// packed returns a packed list of numbers.
func packed(list []uint64) protobuf.Message {
	var m protobuf.Message
	for _, v := range list {
		m = protowire.AppendVarint(m, v)
	}
	return m
}

// write writes the dictionary.
func (d *dictionary) write(out *bufio.Writer) {
	size := 0
	tables := d.parts()
	for _, t := range tables {
		size += len(t)
	}
	var head protobuf.Message
	head.Head(dataDictionary, size)
	out.Write(head)
	for _, t := range tables {
		out.Write(t)
	}
}

// parts returns the dictionary's tables in the form in which they are written.
func (d *dictionary) parts() []protobuf.Message {
	var links protobuf.Message
	var none protobuf.Message
	none.Bytes(1, make([]byte, 16)) // no trace
	none.Bytes(2, make([]byte, 8))  // no span
	links.Bytes(dictLink, none)
	return []protobuf.Message{d.mappings.out, d.locations.out, d.functions.out, links, d.strings.out, d.attributes.out, d.stacks.out}
}
