package pprof

import (
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
)

const maxEvents = 1 << 10

// columns decides which event each value of a sample is of. A file whose samples have several values
// and none that counts samples, such as a heap profile of Go, is written again as it was: its events
// say their column.
func (r *reader) columns(p *profile.Profile) {
	r.countColumn = -1
	r.eventOf = map[int]int{}
	for i, t := range r.types {
		if t.Name == "samples" && t.Unit == "count" && len(r.types) > 1 {
			r.countColumn = i
			break
		}
	}
	var columns []int
	for i := range r.types {
		if i != r.countColumn && i < maxEvents {
			columns = append(columns, i)
		}
	}
	if r.ours && len(columns) == len(p.Events) {
		for e, col := range columns {
			if r.countColumn < 0 { // the order is that of another program
				e = slices.IndexFunc(p.Events, func(e profile.Event) bool { return e.Name == r.types[col].Name && e.Column == 0 })
				if e < 0 {
					continue
				}
				p.Events[e].Column = uint16(col + 1)
			}
			r.eventOf[col] = e
		}
		return
	}
	// The file's default event comes first here: pprof's rule is the named one, otherwise the last.
	first := len(columns) - 1
	for i, col := range columns {
		if r.types[col].Name == r.defaultType {
			first = i
		}
	}
	p.Events = nil
	add := func(col int) {
		e := r.types[col]
		if e.Name == r.periodType {
			e.Period = r.period
		}
		if r.countColumn < 0 && len(columns) > 1 {
			e.Column = uint16(col + 1)
		}
		r.eventOf[col] = len(p.Events)
		p.Events = append(p.Events, e)
	}
	if first >= 0 {
		add(columns[first])
	}
	for i, col := range columns {
		if i != first {
			add(col)
		}
	}
}

func (r *reader) valueType(data []byte) (name, unit string, err error) {
	c := cursor{rest: data}
	for c.next() {
		switch c.field {
		case valueTypeType:
			name = r.text(c.value)
		case valueTypeUnit:
			unit = r.text(c.value)
		}
	}
	return name, unit, c.err
}
