package speedscope

import (
	"cmp"
	"regexp"

	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/profile"
)

// list is one of the file's profiles while it is read. Its fields may come in any order.
type list struct {
	typ, name, unit string
	start           float64
	nodes           []uint32
	weights         []float64
	number          int64    // candid's: the index among the file's threads, from 1; 0: missing
	times           []uint64 // candid's, ns
	did             []did    // the distinct states and system calls
	state           []uint32 // by sample: an index into did
	skids           []skid
	changes         []change
	event, pid, tid int
	named           bool // candid wrote the names of thread and event
	thread          string
	osName, kind    string
}

// skid is where a sample came late: frames of the file, the outermost first.
type skid struct {
	sample uint32
	frames []uint32
}

// maxSkid is more than the number of functions that call each other to enable interrupts.
const maxSkid = 8

// change is the entry into, or exit from, a function.
type change struct {
	at    float64
	frame uint32
	close bool
}

func (r *reader) profile() {
	s := &r.s
	var l list
	s.object(func(key string) {
		switch key {
		case "type":
			l.typ = s.string()
		case "name":
			l.name = s.string()
		case "unit":
			l.unit = s.string()
		case "startValue":
			l.start = s.number()
		case "samples":
			s.array(func() {
				if len(l.nodes) >= maxSamples {
					s.err = cmp.Or(s.err, errTooLarge)
				}
				l.nodes = memlimit.Append(r.b.Meter(), l.nodes, r.stack())
			})
		case "weights":
			s.array(func() {
				if len(l.weights) >= maxSamples {
					s.err = cmp.Or(s.err, errTooLarge)
				}
				l.weights = memlimit.Append(r.b.Meter(), l.weights, s.number())
			})
		case "events":
			s.array(func() { r.change(&l) })
		case "candid":
			s.object(func(key string) { r.own(&l, key) })
		default:
			s.skip()
		}
	})
	if s.err == nil {
		r.add(&l)
	}
}

// own reads what candid adds to a thread.
func (r *reader) own(l *list, key string) {
	s := &r.s
	switch key {
	case "event":
		l.event, l.named = int(s.index()), true
	case "number":
		l.number = 1 + int64(s.index())
	case "pid":
		l.pid = int(int32(s.number()))
	case "tid":
		l.tid = int(int32(s.number()))
	case "thread":
		l.thread = s.string()
	case "osName":
		l.osName = s.string()
	case "kind":
		l.kind = s.string()
	case "times":
		last := uint64(0)
		s.array(func() {
			if len(l.times) >= maxSamples {
				s.err = cmp.Or(s.err, errTooLarge)
			}
			last += r.count(s.number())
			l.times = memlimit.Append(r.b.Meter(), l.times, last)
		})
	case "states":
		s.array(func() {
			var k did
			part := 0
			s.array(func() {
				switch text := s.string(); part {
				case 0:
					k.state, _ = profile.StateByName(text) // a later version may know others
				case 1:
					k.syscall = r.b.Syscall(text)
				}
				part++
			})
			if len(l.did) >= maxStates {
				s.err = cmp.Or(s.err, errTooLarge)
				return
			}
			l.did = append(l.did, k)
		})
	case "state":
		s.array(func() {
			if len(l.state) >= maxSamples {
				s.err = cmp.Or(s.err, errTooLarge)
			}
			l.state = memlimit.Append(r.b.Meter(), l.state, s.index())
		})
	case "skid":
		s.array(func() {
			var k skid
			n := 0
			s.array(func() {
				if i := s.index(); n == 0 {
					k.sample = i
				} else {
					k.frames = append(k.frames, i)
				}
				if n++; n > 1+maxSkid || len(l.skids) >= maxSamples {
					s.err = cmp.Or(s.err, errTooLarge)
				}
			})
			l.skids = memlimit.Append(r.b.Meter(), l.skids, k)
		})
	default:
		s.skip()
	}
}

// stack reads a stack of indices, the outermost first.
func (r *reader) stack() uint32 {
	node, depth := uint32(profile.RootNode), 0
	r.s.array(func() {
		frame := r.s.index()
		if r.s.err != nil {
			return
		}
		if depth++; depth > maxStack || r.raw.Len() > maxNodes || r.b.Single() > maxSamples {
			r.s.err = errTooLarge
			return
		}
		node = r.raw.Child(node, frame)
	})
	return node
}

func (r *reader) change(l *list) {
	s := &r.s
	var c change
	s.object(func(key string) {
		switch key {
		case "type":
			c.close = s.string() == "C"
		case "frame":
			c.frame = s.index()
		case "at":
			c.at = s.number()
		default:
			s.skip()
		}
	})
	if len(l.changes) >= maxSamples {
		s.err = cmp.Or(s.err, errTooLarge)
		return
	}
	l.changes = memlimit.Append(r.b.Meter(), l.changes, c)
}

// numbered matches the names that candid, and others, give to threads.
var numbered = regexp.MustCompile(`^(.*) \(tid (\d{1,10})\)`)
