package profile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Label is a key and value attached to a sample: the class of an allocated object, the tenant that a
// request is of, the size of a block.
type Label struct {
	Key string
	// Text is the value, unless the value is a number.
	Text   string
	Number int64
	Unit   string // of Number, as the file calls it; ""
	IsText bool
}

// TextLabel returns a label whose value is a text.
func TextLabel(key, text string) Label { return Label{Key: key, Text: text, IsText: true} }

// Value returns the value for people.
func (l *Label) Value() string {
	if l.IsText {
		return l.Text
	}
	if l.Unit != "" {
		return strconv.FormatInt(l.Number, 10) + " " + l.Unit
	}
	return strconv.FormatInt(l.Number, 10)
}

func (l Label) compare(o Label) int {
	return cmp.Or(cmp.Compare(l.Key, o.Key), cmp.Compare(l.Text, o.Text), cmp.Compare(l.Number, o.Number), cmp.Compare(l.Unit, o.Unit), compareBools(l.IsText, o.IsText))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// maxCircumstances is the number of different combinations of a system call and labels that a
// profile has at most; Sample.Syscall is an index into them. maxSyscalls of them, more than any
// system has, are kept free for system calls without labels.
const (
	maxCircumstances = 1 << 16
	maxSyscalls      = 4096
	maxLabeled       = maxCircumstances - maxSyscalls
)

// Labeled returns the index of a system call with labels, as Syscall does for one without, and
// whether all labels are kept. If a profile has too many combinations, a further one keeps only its
// system call. Labeled changes labels.
func (b *Builder) Labeled(call string, labels []Label) (i uint16, whole bool) {
	if len(labels) == 0 {
		return b.Syscall(call), true
	}
	labels, b.labelKey, whole = plainLabels(labels, b.labelKey[:0])
	if len(labels) == 0 {
		return b.Syscall(call), whole
	}
	name := labelText(call)
	b.labelKey = append(append(b.labelKey, 0), name...)
	i, ok := b.labeled[string(b.labelKey)]
	if !ok {
		if len(b.p.Syscalls) >= maxLabeled || b.meter.Room(3*len(b.labelKey)) != nil {
			return b.Syscall(call), false
		}
		if b.labeled == nil {
			b.labeled = make(map[string]uint16)
		}
		i = b.circumstance(name)
		b.p.Labels = append(b.p.Labels, make([][]Label, len(b.p.Syscalls)-len(b.p.Labels))...)
		b.p.Labels[i] = slices.Clone(labels)
		b.labeled[string(b.labelKey)] = i
	}
	return i, whole
}

// Limits of the labels of a sample: a file can refer to one text very often.
const (
	maxLabels     = 256
	MaxLabelText  = 4 << 10  // bytes of a key, value or unit; of longer ones the beginning is kept
	MaxLabelBytes = 16 << 10 // as FormatLabels writes them
)

// plainLabels returns labels as they are kept: sorted, each once, and those that are within the
// limits. whole is false if some are not. It changes labels, and writes to text what FormatLabels
// returns of them.
func plainLabels(labels []Label, text []byte) (_ []Label, _ []byte, whole bool) {
	for i := range labels {
		l := &labels[i]
		l.Key, l.Text, l.Unit = labelText(l.Key), labelText(l.Text), labelText(l.Unit)
	}
	slices.SortFunc(labels, Label.compare)
	labels = slices.Compact(labels)
	kept := labels[:0]
	for _, l := range labels {
		n := len(text)
		if len(kept) == maxLabels || n+len(l.Key)+len(l.Text)+len(l.Unit) > MaxLabelBytes {
			continue
		}
		if text = appendLabel(text, &l); len(text) > MaxLabelBytes {
			text = text[:n]
			continue
		}
		kept = append(kept, l)
	}
	return kept, text, len(kept) == len(labels)
}

// labelText returns the part of a text that is kept.
func labelText(s string) string { return cutText(PlainText(cutText(s))) }

// cutText returns the beginning of a text that is too long. It does not keep the rest in memory.
func cutText(s string) string {
	if len(s) <= MaxLabelText {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:MaxLabelText], ""))
}

// NoteUnlabeled adds a note that some samples lost labels, unless n, their number, is 0.
func (m *Meta) NoteUnlabeled(n uint64) {
	if n > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("there are too many different labels, or too long ones: %d samples lost some or all of theirs", n))
	}
}

// LabelsOf returns the labels of a sample, sorted by key.
func (p *Profile) LabelsOf(s *Sample) []Label { return p.labels(int(s.Syscall)) }

func (p *Profile) labels(i int) []Label {
	if i < len(p.Labels) {
		return p.Labels[i]
	}
	return nil
}

// FormatLabels returns labels as a text that ParseLabels reads.
func FormatLabels(labels []Label) string {
	var b []byte
	for i := range labels {
		b = appendLabel(b, &labels[i])
	}
	return string(b)
}

func appendLabel(b []byte, l *Label) []byte {
	b = append(strconv.AppendQuote(b, l.Key), '=')
	if l.IsText {
		b = strconv.AppendQuote(b, l.Text)
	} else {
		b = strconv.AppendQuote(strconv.AppendInt(b, l.Number, 10), l.Unit)
	}
	return append(b, ' ')
}

// ParseLabels reads what FormatLabels wrote, up to the first part that is malformed, and returns the
// labels as Labeled keeps them.
func ParseLabels(s string) []Label {
	labels, _, _ := plainLabels(parseLabels(s), nil)
	return labels
}

func parseLabels(s string) (labels []Label) {
	quoted := func() (string, bool) {
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", false
		}
		s = s[len(q):]
		text, err := strconv.Unquote(q)
		return text, err == nil
	}
	for s != "" && len(labels) < maxLabels {
		var l Label
		var ok bool
		if l.Key, ok = quoted(); !ok || !strings.HasPrefix(s, "=") {
			return labels
		}
		s = s[1:]
		if l.IsText = strings.HasPrefix(s, `"`); l.IsText {
			l.Text, ok = quoted()
		} else if digits, _, found := strings.Cut(s, `"`); found {
			n, err := strconv.ParseInt(digits, 10, 64)
			s = s[len(digits):]
			l.Unit, ok = quoted()
			l.Number, ok = n, ok && err == nil
		} else {
			ok = false
		}
		if !ok {
			return labels
		}
		labels = append(labels, l)
		s = strings.TrimPrefix(s, " ")
	}
	return labels
}

// LabelFilter chooses samples by a label.
type LabelFilter struct {
	Key   string
	Value *regexp.Regexp // nil: any value
}

// chooses reports whether one of the labels is what the filter asks for.
func (f *LabelFilter) chooses(labels []Label) bool {
	return slices.ContainsFunc(labels, func(l Label) bool {
		return l.Key == f.Key && (f.Value == nil || f.Value.MatchString(l.Value()))
	})
}

// labeledAs reports for every index of Syscalls whether all filters choose its labels; nil: no
// filter.
func (p *Profile) labeledAs(filters []LabelFilter) []bool {
	if len(filters) == 0 {
		return nil
	}
	takes := make([]bool, max(len(p.Syscalls), 1))
	for i := range takes {
		takes[i] = !slices.ContainsFunc(filters, func(f LabelFilter) bool { return !f.chooses(p.labels(i)) })
	}
	return takes
}

// mostKeys is how many keys of labels are listed for people.
const mostKeys = 20

// SomeLabelKeys returns the keys of labels for people, as a list: of many only the first.
func (p *Profile) SomeLabelKeys() []string {
	keys := p.LabelKeys()
	if more := len(keys) - mostKeys; more > 0 {
		keys = append(keys[:mostKeys], fmt.Sprintf("and %d more", more))
	}
	return keys
}

// LabelKeys returns the keys of all labels, sorted.
func (p *Profile) LabelKeys() []string {
	seen := map[string]bool{}
	var keys []string
	for _, set := range p.Labels {
		for i := range set {
			if k := set[i].Key; !seen[k] {
				seen[k] = true
				keys = append(keys, k)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// LabelCount is how much the samples with a label count.
type LabelCount struct {
	Label
	Count
}

// ByLabel returns the labels of the chosen samples: by key, and for each the values with the most
// weight first. A sample with several labels counts for each of them.
func (s *Selection) ByLabel() []LabelCount {
	at := map[Label]int{}
	var rows []LabelCount
	for _, calls := range s.doing {
		for i, c := range calls {
			if c.Samples == 0 {
				continue
			}
			for _, l := range s.Profile.labels(i) {
				k, ok := at[l]
				if !ok {
					k = len(rows)
					at[l] = k
					rows = append(rows, LabelCount{Label: l})
				}
				rows[k].Add(c)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b LabelCount) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(b.Weight, a.Weight), cmp.Compare(b.Samples, a.Samples), a.Label.compare(b.Label))
	})
	return rows
}
