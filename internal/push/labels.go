package push

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

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

// promName returns a label's name as Prometheus and everything derived from it writes names: letters,
// digits and underscores. Names that begin with two underscores are reserved.
func promName(s string) string {
	b := []byte(strings.TrimLeft(s, "_"))
	for i, c := range b {
		if c >= utf8.RuneSelf || !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			b[i] = '_'
		}
	}
	if len(b) == 0 || b[0] >= '0' && b[0] <= '9' {
		b = append([]byte{'_'}, b...)
	}
	return string(b[:min(len(b), maxLabelName)])
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
		if prom := promName(name); value == "" || prom == labelService || prom == "name__" {
			continue
		}
		list = append(list, label{cut(name, maxLabelName), value})
	}
	return list[:min(len(list), maxLabels-2)]
}

// promLabels returns the labels of a series as Pyroscope and Parca take them, sorted.
func (s *series) promLabels() []label {
	name, _ := typeOf(s.event)
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

// typeOf returns what profiles of an event are called (process_cpu), and what their values are called
// (cpu): the names of Go's and async-profiler's profiles, for which the servers have views. Their
// characters are those that servers accept.
func typeOf(e profile.Event) (name, value string) {
	switch e.Kind {
	case profile.EventCPU, profile.EventCPUPart:
		return "process_cpu", "cpu"
	case profile.EventWall:
		return "wall", "wall"
	case profile.EventOffCPU:
		return "off_cpu", "off_cpu"
	case profile.EventAlloc:
		if e.Unit == "bytes" {
			return "memory", "alloc_space"
		}
	case profile.EventLive:
		if e.Unit == "bytes" {
			return "memory", "inuse_space"
		}
	case profile.EventLock:
		if e.Unit == "nanoseconds" {
			return "mutex", "delay"
		}
	}
	other := cut(promName(e.Name), 64)
	return other, other
}
