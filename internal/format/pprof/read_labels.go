package pprof

import (
	"encoding/binary"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
)

// Limits of labels that are read.
const (
	// maxLabels is how many labels of a sample are kept: Go's programs have a handful.
	maxLabels = 64
	// maxDecoded is how many different lists of labels of a file are decoded. A profile has fewer
	// combinations, but the same labels may be in another order.
	maxDecoded = 1 << 17
)

// labels are those of the sample that is read for which candid has no field.
type labels struct {
	list []profile.Label
	// raw is what they, and the name of the system call, are decoded from: a few bytes can stand for
	// long texts.
	raw  []byte
	size int  // bytes of keys, values and units
	cut  bool // there are more than are kept
}

func (l *labels) reset() { *l = labels{list: l.list[:0], raw: l.raw[:0]} }

// circumstance is what a list of labels, with the name of a system call, is in the profile.
type circumstance struct {
	index uint16 // Sample.Syscall
	whole bool   // none is lost
}

// circumstance returns the index of a system call and of the labels that were read, and whether all
// labels are kept.
func (r *reader) circumstance(call string) (uint16, bool) {
	l := &r.labels
	if len(l.raw) == 0 {
		return 0, !l.cut
	}
	c, ok := r.decoded[string(l.raw)]
	if !ok {
		if len(r.decoded) >= maxDecoded || r.b.Meter().Room(len(l.raw)) != nil {
			return r.b.Syscall(call), len(l.list) == 0 && !l.cut
		}
		c.index, c.whole = r.b.Labeled(call, l.list)
		r.decoded[string(l.raw)] = c
	}
	return c.index, c.whole && !l.cut
}

// label reads a label of a sample.
func (r *reader) label(data []byte, s *profile.Sample, key *threadKey, event, kind, call *string) error {
	var name, text, unit string
	var num uint64
	c := cursor{rest: data}
	for c.next() {
		switch c.field {
		case labelKey:
			name = r.text(c.value)
		case labelStr:
			text = r.text(c.value)
		case labelNum:
			num = c.value
		case labelNumUnit:
			unit = r.text(c.value)
		}
	}
	if c.err != nil {
		return c.err
	}
	others := !r.ours && privateLabel(name)
	if other, ok := strings.CutPrefix(name, labelPrefix); ok && r.ours {
		others, name = true, other
	}
	if others {
		r.keep(data, name, text, num, unit)
		return nil
	}
	numeric := text == ""
	state, known := profile.StateByName(text)
	switch {
	case name == labelThread && !numeric:
		key.name = text
	case name == labelSkid:
		r.skids = append(r.skids, text)
	case name == labelKind:
		*kind = text
	case (name == labelTID || name == labelThreadID) && numeric:
		key.tid = int(num)
	case (name == labelPID || name == labelProcessID) && numeric:
		key.pid = int(num)
	case name == labelState && known:
		s.State = state
	case name == labelCall && !numeric:
		*call = text[:min(len(text), profile.MaxLabelText)]
		r.labels.from(data)
	case name == labelStack:
		s.End, s.Flags = parseQuality(text)
	case name == labelEvent:
		*event = text
	default:
		r.keep(data, name, text, num, unit)
	}
	return nil
}

// keep keeps a label that candid has no field for.
func (r *reader) keep(data []byte, key, text string, num uint64, unit string) {
	l := &r.labels
	size := 0
	for _, s := range [...]string{key, text, unit} {
		size += min(len(s), profile.MaxLabelText)
	}
	if len(l.list) == maxLabels || l.size+size > profile.MaxLabelBytes {
		l.cut = true
		return
	}
	l.size += size
	l.from(data)
	if text != "" {
		l.list = append(l.list, profile.TextLabel(key, text))
	} else {
		l.list = append(l.list, profile.Label{Key: key, Number: int64(num), Unit: unit})
	}
}

// from adds the field that a label was read from to raw.
func (l *labels) from(data []byte) {
	l.raw = append(binary.AppendUvarint(l.raw, uint64(len(data))), data...)
}
