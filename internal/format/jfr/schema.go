package jfr

import (
	"fmt"
	"strconv"

	"github.com/candid-profiler/candid/internal/memlimit"
)

// Limits of the types that a file may describe. The JDK's files have some 200 types of at most 60
// fields, nested four deep.
const (
	maxTypes    = 1 << 14
	maxDepth    = 16
	maxElements = 1 << 20
	maxOps      = 1 << 16 // of a type with everything it contains
)

// class is a type as a file describes it.
type class struct {
	id     uint64
	name   string
	super  string
	fields []field
	plan   *plan // made when it is first needed
	making bool
}

type field struct {
	name     string
	typ      uint64
	constant bool
	array    bool
}

// schema holds the types of a chunk.
type schema struct {
	byID   map[uint64]*class
	byName map[string]*class
}

// readMetadata reads the content of a metadata event after its size.
func readMetadata(b []byte, meter *memlimit.Meter) (*schema, error) {
	c := &cursor{b: b}
	if typ := c.long(); c.err == nil && typ != typeMetadata {
		return nil, fmt.Errorf("%w: an event of type %d where its types should be described", ErrMalformed, typ)
	}
	c.long() // start
	c.long() // duration
	c.long() // number
	m := &metadataReader{c: c, meter: meter, gate: meter.Gate()}
	for range c.count() {
		if err := m.gate.Pass(); err != nil {
			return nil, err
		}
		m.table = memlimit.Append(meter, m.table, c.text().s)
	}
	root := m.element(0)
	if c.err != nil {
		return nil, fmt.Errorf("its types: %w", c.err)
	}
	s := &schema{byID: map[uint64]*class{}, byName: map[string]*class{}}
	for _, part := range root.children {
		if part.name == "metadata" {
			for _, e := range part.children {
				if err := s.add(e); err != nil {
					return nil, err
				}
			}
		}
	}
	return s, nil
}

type metadataReader struct {
	c     *cursor
	meter *memlimit.Meter
	gate  memlimit.Gate
	table []string
	n     int
}

func (m *metadataReader) text() string {
	i := m.c.long()
	if i >= uint64(len(m.table)) {
		m.c.fail(fmt.Errorf("%w: text %d of %d", ErrMalformed, i, len(m.table)))
		return ""
	}
	return m.table[i]
}

func (m *metadataReader) element(depth int) *element {
	e := &element{name: m.text()}
	if m.n++; m.n > maxElements || depth > maxDepth {
		m.c.fail(fmt.Errorf("%w: too many, or too deep", ErrMalformed))
		return e
	}
	for range m.c.count() {
		if err := m.gate.Pass(); err != nil {
			m.c.fail(err)
			break
		}
		e.attrs = append(memlimit.Append(m.meter, e.attrs, m.text()), m.text())
	}
	if err := m.gate.Pass(); err != nil {
		m.c.fail(err)
	}
	for range m.c.count() {
		if m.c.err != nil {
			break
		}
		e.children = append(e.children, m.element(depth+1))
	}
	return e
}

// hasEvents reports whether any type is an event.
func (s *schema) hasEvents() bool {
	for _, t := range s.byID {
		if t.super == superEvent {
			return true
		}
	}
	return false
}

func (s *schema) add(e *element) error {
	if e.name != "class" {
		return nil
	}
	id, err := strconv.ParseUint(e.attr("id"), 10, 64)
	if err != nil || len(s.byID) >= maxTypes {
		return fmt.Errorf("%w: type %q has the number %q", ErrMalformed, e.attr("name"), e.attr("id"))
	}
	t := &class{id: id, name: e.attr("name"), super: e.attr("superType")}
	for _, f := range e.children {
		if f.name != "field" {
			continue
		}
		typ, err := strconv.ParseUint(f.attr("class"), 10, 64)
		if err != nil {
			return fmt.Errorf("%w: field %s.%s is of type %q", ErrMalformed, t.name, f.attr("name"), f.attr("class"))
		}
		dimension := f.attr("dimension")
		t.fields = append(t.fields, field{
			name: f.attr("name"), typ: typ, constant: f.attr("constantPool") == "true",
			array: dimension != "" && dimension != "0",
		})
	}
	s.byID[id], s.byName[t.name] = t, t
	return nil
}

// op is how one field is read.
type op uint8

const (
	opLong op = iota // any integer, or the number of a constant
	opByte
	opFour  // a float
	opEight // a double
	opText
	opStruct
)

// plan is how a value of a type is read: its fields in order.
type plan struct {
	steps []step
	least int // the least number of bytes of a value
	ops   int // steps, including those of contained types
}

type step struct {
	op    op
	array bool
	inner *plan
	field int // index into the class's fields
}

// planOf returns the plan of a type.
func (s *schema) planOf(t *class) (*plan, error) {
	if t.plan != nil {
		return t.plan, nil
	}
	if t.making {
		return nil, fmt.Errorf("%w: type %s contains itself", ErrMalformed, t.name)
	}
	t.making = true
	defer func() { t.making = false }()
	p := &plan{}
	for i, f := range t.fields {
		st := step{array: f.array, field: i}
		least := 1
		if !f.constant {
			of := s.byID[f.typ]
			if of == nil {
				return nil, fmt.Errorf("%w: field %s.%s is of type %d, which is not described", ErrMalformed, t.name, f.name, f.typ)
			}
			switch of.name {
			case "boolean", "byte":
				st.op = opByte
			case "char", "short", "int", "long":
				st.op = opLong
			case "float":
				st.op, least = opFour, 4
			case "double":
				st.op, least = opEight, 8
			case nameString:
				st.op = opText
			default:
				inner, err := s.planOf(of)
				if err != nil {
					return nil, err
				}
				if inner.least == 0 && !f.array {
					continue // files contain no bytes for it
				}
				st.op, st.inner, least = opStruct, inner, inner.least
				p.ops += inner.ops
			}
		}
		if f.array {
			least = 1
		}
		p.least += least
		if p.ops++; p.ops > maxOps {
			return nil, fmt.Errorf("%w: type %s has too many fields", ErrMalformed, t.name)
		}
		p.steps = append(p.steps, st)
	}
	t.plan = p
	return p, nil
}

// skip skips a value.
func (p *plan) skip(c *cursor) {
	for i := range p.steps {
		if c.err != nil {
			return
		}
		st := &p.steps[i]
		if !st.array {
			st.skip(c)
			continue
		}
		for range st.count(c) {
			if st.skip(c); c.err != nil {
				return
			}
		}
	}
}

// count reads the number of elements of an array. Elements that take no bytes could have any
// number: they count as none.
func (st *step) count(c *cursor) int {
	n := c.count()
	if st.op == opStruct && st.inner.least == 0 {
		return 0
	}
	return n
}

func (st *step) skip(c *cursor) {
	switch st.op {
	case opLong:
		c.long()
	case opByte:
		c.skip(1)
	case opFour:
		c.skip(4)
	case opEight:
		c.skip(8)
	case opText:
		c.skipText()
	case opStruct:
		st.inner.skip(c)
	}
}

// slots hold where the fields of a type are stored: by field, an index plus 1 into a record's
// numbers, or into its texts; 0: nowhere.
type slots struct {
	plan *plan
	to   []uint8
}

// Maximum number of fields that are read of one type.
const (
	maxNumbers = 8
	maxTexts   = 8
)

// record holds those fields of a value that were asked for.
type record struct {
	n [maxNumbers]uint64
	t [maxTexts]text
}

// slotsOf plans the reading of fields by name: numbers into record.n, texts into record.t, each in
// the order given. Fields that the type does not have stay 0. Fields of another kind than asked for
// are skipped.
func (s *schema) slotsOf(t *class, numbers, texts []string) (slots, error) {
	p, err := s.planOf(t)
	if err != nil {
		return slots{}, err
	}
	out := slots{plan: p, to: make([]uint8, len(p.steps))}
	for i := range p.steps {
		st := &p.steps[i]
		if st.array {
			continue
		}
		list := numbers
		switch st.op {
		case opText:
			list = texts
		case opLong, opByte:
		default:
			continue
		}
		for j, name := range list {
			if t.fields[st.field].name == name {
				out.to[i] = uint8(j + 1)
			}
		}
	}
	return out, nil
}

// read reads a value into r.
func (sl *slots) read(c *cursor, r *record) {
	for i := range sl.plan.steps {
		st := &sl.plan.steps[i]
		to := sl.to[i]
		switch {
		case to == 0:
			if !st.array {
				st.skip(c)
				continue
			}
			for range st.count(c) {
				if st.skip(c); c.err != nil {
					return
				}
			}
		case st.op == opLong:
			r.n[to-1] = c.long()
		case st.op == opByte:
			r.n[to-1] = uint64(c.byte())
		default:
			r.t[to-1] = c.text()
		}
	}
}
