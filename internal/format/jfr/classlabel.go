package jfr

import (
	"github.com/candid-profiler/candid/internal/javaname"
	"github.com/candid-profiler/candid/internal/profile"
)

// labelClass is the label with the class of what is allocated, or of the lock that is waited for.
const labelClass = "class"

// ownLabels reads labels as candid writes them; each text, to which a file may refer very often, once.
func (r *reader) ownLabels(text string) []profile.Label {
	if text == "" || len(text) > profile.MaxLabelBytes {
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

// ofClass is what samples with a class have as Sample.Syscall: the label that says it.
type ofClass struct {
	index uint16
	lost  bool // there are too many labels
}

// classLabel returns the Sample.Syscall of a sample with a class.
func (r *reader) classLabel(c *chunk, id uint64) uint16 {
	p := &c.pools
	l, ok := p.labels[id]
	if !ok && id != 0 {
		symbol, _ := p.classes.get(id)
		if name := javaname.Source(withoutHash(p.symbol(symbol))); name != "" {
			var whole bool
			l.index, whole = r.b.Labeled("", []profile.Label{profile.TextLabel(labelClass, name)})
			l.lost = !whole
		}
		if p.labels == nil {
			p.labels = map[uint64]ofClass{}
		}
		p.labels[id] = l
	}
	if l.lost {
		r.foreign.unlabeled++
	}
	return l.index
}
