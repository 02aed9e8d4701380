package jfr

import (
	"encoding/binary"
	"strconv"
	"sync"

	"github.com/candid-profiler/candid/internal/profile"
)

// element is a node of the metadata, which is a tree with names and values in a table of strings.
type element struct {
	name     string
	attrs    []string // alternating names and values
	children []*element
}

func (e *element) attr(name string) string {
	for i := 0; i+1 < len(e.attrs); i += 2 {
		if e.attrs[i] == name {
			return e.attrs[i+1]
		}
	}
	return ""
}

func (e *element) with(children ...*element) *element {
	e.children = append(e.children, children...)
	return e
}

func node(name string, attrs ...string) *element { return &element{name: name, attrs: attrs} }

func annotation(typ int, value string) *element {
	e := node("annotation", "class", strconv.Itoa(typ))
	if value != "" {
		e.attrs = append(e.attrs, "value", value)
	}
	return e
}

// describe returns the metadata of files that candid writes.
func describe() *element {
	all := node("metadata")
	for i := range typeDefs {
		all.with(typeDefs[i].element())
	}
	for i := range profile.ObservationKinds {
		def := observationType(i)
		all.with(def.element())
	}
	for _, def := range describedOnly() {
		all.with(def.element())
	}
	return node("root").with(all, region())
}

func region() *element {
	return node("region", "locale", "en_US", "gmtOffset", "0", "ticksToMillis", "1000000")
}

func (t *typeDef) element() *element {
	e := node("class", "id", strconv.Itoa(t.id), "name", t.name)
	if t.super != "" {
		e.attrs = append(e.attrs, "superType", t.super)
	}
	if t.simple {
		e.attrs = append(e.attrs, "simpleType", "true")
	}
	if t.label != "" {
		e.with(annotation(typeLabel, t.label))
	}
	if t.description != "" {
		e.with(annotation(typeDescription, t.description))
	}
	if len(t.category) > 0 {
		c := annotation(typeCategory, "")
		for i, name := range t.category {
			c.attrs = append(c.attrs, "value-"+strconv.Itoa(i), name)
		}
		e.with(c)
	}
	if t.contentType {
		e.with(annotation(typeContentType, ""))
	}
	for _, f := range t.fields {
		child := node("field", "name", f.name, "class", strconv.Itoa(f.typ))
		if f.flags&constant != 0 {
			child.attrs = append(child.attrs, "constantPool", "true")
		}
		if f.flags&array != 0 {
			child.attrs = append(child.attrs, "dimension", "1")
		}
		if f.label != "" {
			child.with(annotation(typeLabel, f.label))
		}
		for _, c := range contentTypes {
			if f.flags&c.flag != 0 {
				child.with(annotation(c.typ, c.value))
			}
		}
		e.with(child)
	}
	return e
}

// metadataEvent returns the metadata of files that candid writes, as an event. Its time is that of
// the first tick.
var metadataEvent = sync.OnceValue(func() []byte { return encodeMetadata(describe()) })

func encodeMetadata(root *element) []byte {
	index := map[string]int{}
	var table []string
	var tree []byte
	text := func(s string) {
		i, ok := index[s]
		if !ok {
			i = len(table)
			index[s] = i
			table = append(table, s)
		}
		tree = binary.AppendUvarint(tree, uint64(i))
	}
	var write func(e *element)
	write = func(e *element) {
		text(e.name)
		tree = binary.AppendUvarint(tree, uint64(len(e.attrs)/2))
		for _, a := range e.attrs {
			text(a)
		}
		tree = binary.AppendUvarint(tree, uint64(len(e.children)))
		for _, c := range e.children {
			write(c)
		}
	}
	write(root)
	b := reserveSize(nil)
	b = appendLong(b, typeMetadata)
	b = appendLong(b, firstTick)
	b = appendLong(b, 0) // duration
	b = appendLong(b, 1) // the number of the metadata
	b = binary.AppendUvarint(b, uint64(len(table)))
	for _, s := range table {
		b = appendString(b, s)
	}
	b = append(b, tree...)
	putSize(b, 0)
	return b
}
