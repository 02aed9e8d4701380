package jfr

import (
	"github.com/candid-profiler/candid/internal/javaname"
	"github.com/candid-profiler/candid/internal/profile"
)

// labelClass is the label with the class of what is allocated, or of the lock that is waited for.
const labelClass = "class"

// maxOwnLabels is how many bytes the labels of a sample take at most in candid's files.
const maxOwnLabels = 64 << 10

// ownLabels reads labels as candid writes them; each text, to which a file may refer very often, once.
func (r *reader) ownLabels(text string) []profile.Label {
	if text == "" || len(text) > maxOwnLabels {
		return nil
	}
	labels, ok := r.own.labelled[text]
	if !ok && r.b.Meter().Room(3*len(text)) == nil {
		labels = profile.ParseLabels(text)
		if r.own.labelled == nil {
			r.own.labelled = map[string][]profile.Label{}
		}
		r.own.labelled[text] = labels
	}
	return labels
}

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
