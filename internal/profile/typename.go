package profile

import "strings"

// TypeName returns what servers that keep profiles call profiles of the event (process_cpu), and what
// they call its values (cpu): the names of Go's and async-profiler's profiles, for which they have views.
// All characters are letters, digits and underscores, because the servers' query languages accept no
// others.
func (e *Event) TypeName() (name, value string) {
	switch e.Kind {
	case EventCPU, EventCPUPart:
		return "process_cpu", "cpu"
	case EventWall:
		return "wall", "wall"
	case EventOffCPU:
		return "off_cpu", "off_cpu"
	case EventAlloc:
		if e.Unit == "bytes" {
			return "memory", "alloc_space"
		}
	case EventLive:
		if e.Unit == "bytes" {
			return "memory", "inuse_space"
		}
	case EventLock:
		if e.Unit == "nanoseconds" {
			return "mutex", "delay"
		}
	}
	other := PlainName(e.Name)
	other = other[:min(len(other), 64)]
	return other, other
}

// PlainName returns a name with an underscore for each byte that is not a letter, a digit or an
// underscore, as Prometheus and everything derived from it needs names. It begins with a letter, or with
// a single underscore before a digit: two are reserved.
func PlainName(s string) string {
	b := []byte(strings.TrimLeft(s, "_"))
	for i, c := range b {
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			b[i] = '_'
		}
	}
	plain := strings.TrimLeft(string(b), "_")
	if plain == "" || plain[0] >= '0' && plain[0] <= '9' {
		plain = "_" + plain
	}
	return plain
}
