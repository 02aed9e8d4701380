package jfr

import (
	"github.com/candid-profiler/candid/internal/javaname"
	"github.com/candid-profiler/candid/internal/profile"
)

// labelClass is the label with the class of what is allocated, or of the lock that is waited for.
const labelClass = "class"

// classLabel returns what samples with a class have as Sample.Syscall: the label that says it.
func (r *reader) classLabel(c *chunk, id uint64) uint16 {
	p := &c.pools
	if i, ok := p.labels[id]; ok || id == 0 {
		return i
	}
	var i uint16
	symbol, _ := p.classes.get(id)
	if name := javaname.Source(withoutHash(p.symbol(symbol))); name != "" {
		i = r.b.Labeled("", []profile.Label{profile.TextLabel(labelClass, name)})
	}
	if p.labels == nil {
		p.labels = map[uint64]uint16{}
	}
	p.labels[id] = i
	return i
}
