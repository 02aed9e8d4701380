package push

import (
	"maps"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
)

// Limits of labels, which are Pyroscope's: validation.max-label-names-per-series and its siblings.
const (
	maxLabels     = 30
	maxLabelName  = 1024
	maxLabelValue = 2048
)

// label is a label of a series.
type label struct{ name, value string }

// Labels that candid sets.
const (
	labelProfile = "__name__"
	labelService = "service_name"
	attrService  = "service.name"
)

// promName returns a label's name as Pyroscope and Parca take it.
func promName(s string) string {
	s = profile.PlainName(s)
	return s[:min(len(s), maxLabelName)]
}

// cut returns a valid string of at most so many bytes.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// labels returns all labels of a series but those that candid sets, sorted by name: those of the
// window take precedence over those of the configuration. Labels without a value are none.
func (s *series) labels() []label {
	all := maps.Clone(s.fixed)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, s.own)
	var list []label
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := cut(strings.TrimSpace(all[name]), maxLabelValue)
		if prom := promName(name); value == "" || prom == labelService || prom == profile.PlainName(labelProfile) {
			continue
		}
		list = append(list, label{cut(name, maxLabelName), value})
	}
	return list[:min(len(list), maxLabels-2)]
}

// promLabels returns the labels of a series as Pyroscope and Parca take them, sorted.
func (s *series) promLabels() []label {
	name, _ := s.event.TypeName()
	list := []label{{labelProfile, name}, {labelService, cut(s.service, maxLabelValue)}}
	for _, l := range s.labels() {
		l.name = promName(l.name)
		if !slices.ContainsFunc(list, func(o label) bool { return o.name == l.name }) {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b label) int { return strings.Compare(a.name, b.name) })
	return list
}
