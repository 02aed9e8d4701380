package speedscope

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/profile"
)

// Limits of what a file can make a reader hold.
const (
	maxNodes    = 32 << 20
	maxSamples  = 16 << 20
	maxFrames   = 2 << 20
	maxProfiles = 1 << 16
	maxStack    = 1 << 16
	maxStates   = 1 << 12 // distinct states of a thread
)

var errTooLarge = errors.New("the file holds more than candid reads: 32 million stack nodes, 16 million samples, 2 million frames")

// Is reports whether a file with this beginning is in speedscope's format.
func Is(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n\ufeff"), []byte("{")) && bytes.Contains(head, []byte("speedscope.app/file-format-schema"))
}

// Read reads a file in speedscope's format: each of its profiles becomes a thread. For a file of
// Write it returns the samples that were written. The result has passed Check.
func Read(in io.Reader) (*profile.Profile, error) { return ReadInto(profile.NewBuilder(), in) }

// ReadInto is Read with an empty Builder of the caller, which may keep samples differently.
func ReadInto(b *profile.Builder, in io.Reader) (*profile.Profile, error) {
	r := &reader{b: b, raw: profile.NewTrie()}
	r.s.in = bufio.NewReaderSize(in, 1<<16)
	if b, err := r.s.in.Peek(3); err == nil && string(b) == "\ufeff" {
		r.s.in.Discard(3)
	}
	r.s.object(r.top)
	if r.s.err != nil {
		return nil, fmt.Errorf("read speedscope: %w", r.s.err)
	}
	p, err := r.finish()
	if err == nil {
		err = cmp.Or(b.Err(), p.Check())
	}
	if err != nil {
		return nil, fmt.Errorf("read speedscope: %w", err)
	}
	return p, nil
}

type reader struct {
	s scanner
	b *profile.Builder
	// raw has the stacks by the file's own indices of frames, which may be defined after the
	// profiles.
	raw    *profile.Trie
	frames []frame
	ours   bool
	extra  extra

	threads map[int64]uint32 // by their number in the file

	units  []string  // of the events, which identify those that the file does not name
	counts []uint64  // samples, by event
	totals []float64 // weights
}

// frame is a frame of the file, with what candid adds to it.
type frame struct {
	name, file, module, kind, prov string
	line                           int32
	skid                           bool
}

// extra is what candid adds to a file about the recording.
type extra struct {
	events   []profile.Event
	start    int64 // ns since 1970, 0: not known
	duration int64
	lost     uint64
	notes    []string
}

func (r *reader) top(key string) {
	s := &r.s
	switch key {
	case "exporter":
		text := s.string()
		r.ours = strings.HasPrefix(text, "candid ")
		if r.ours {
			r.b.Meta().Version = strings.TrimPrefix(text, "candid ")
		}
	case "name":
		r.b.Meta().Command = s.string()
	case "shared":
		s.object(func(key string) {
			if key == "frames" {
				s.array(r.frame)
			} else {
				s.skip()
			}
		})
	case "profiles":
		n := 0
		s.array(func() {
			if n++; n > maxProfiles {
				s.err = errTooLarge
			}
			r.profile()
		})
	case "candid":
		s.object(r.about)
	default:
		s.skip()
	}
}

// about reads what candid adds about the recording.
func (r *reader) about(key string) {
	s := &r.s
	switch key {
	case "events":
		s.array(func() {
			var e profile.Event
			kind := ""
			s.object(func(key string) {
				switch key {
				case "name":
					e.Name = s.string()
				case "unit":
					e.Unit = s.string()
				case "period":
					e.Period = r.count(s.number())
				case "kind":
					kind = s.string()
				default:
					s.skip()
				}
			})
			e.Kind = profile.StoredEventKind(kind, e.Name)
			if len(r.extra.events) < 1<<12 {
				r.extra.events = append(r.extra.events, e)
			}
		})
	case "start":
		r.extra.start, _ = strconv.ParseInt(s.string(), 10, 64) // as text: it has more digits than a float
	case "duration":
		r.extra.duration = int64(r.count(s.number()))
	case "lost":
		r.extra.lost = r.count(s.number())
	case "notes":
		s.array(func() {
			if note := s.string(); len(r.extra.notes) < 100 {
				r.extra.notes = append(r.extra.notes, note)
			}
		})
	default:
		s.skip()
	}
}

func (r *reader) frame() {
	s := &r.s
	var f frame
	s.object(func(key string) {
		switch key {
		case "name":
			f.name = s.string()
		case "file":
			f.file = s.string()
		case "line":
			f.line = int32(min(max(s.number(), 0), math.MaxInt32))
		case "module":
			f.module = s.string()
		case "kind":
			f.kind = s.string()
		case "provenance":
			f.prov = s.string()
		case "skid":
			f.skid = s.number() != 0
		default:
			s.skip()
		}
	})
	if len(r.frames) >= maxFrames {
		s.err = cmp.Or(s.err, errTooLarge)
		return
	}
	r.frames = memlimit.Append(r.b.Meter(), r.frames, f)
}

// scales are the numbers of ns, bytes or single things in the file's units.
var scales = map[string]struct {
	unit  string
	times float64
}{
	"nanoseconds": {"nanoseconds", 1}, "microseconds": {"nanoseconds", 1e3}, "milliseconds": {"nanoseconds", 1e6},
	"seconds": {"nanoseconds", 1e9}, "bytes": {"bytes", 1}, "none": {"count", 1}, "": {"count", 1},
}

// count rounds a weight; negative ones become 0.
func (r *reader) count(f float64) uint64 {
	if !(f > 0) {
		return 0
	}
	return uint64(min(f+0.5, 1<<62))
}

// add adds the samples of a profile.
func (r *reader) add(l *list) {
	name, tid := cmp.Or(l.thread, l.name, "[unknown]"), l.tid
	if m := numbered.FindStringSubmatch(l.name); m != nil && !l.named {
		name = m[1]
		tid, _ = strconv.Atoi(m[2])
	}
	var thread uint32
	if l.named {
		thread = r.ownThread(l, tid, name)
	} else {
		thread = r.b.NewThread(0, tid, name)
	}
	if th := &r.b.Threads()[thread]; l.named {
		th.OSName, th.Kind = cmp.Or(l.osName, name), l.kind
	}
	switch l.typ {
	case "sampled":
		r.sampled(l, thread)
	case "evented":
		r.evented(l, thread)
	default:
		r.s.err = fmt.Errorf("%w: a profile of type %q", ErrMalformed, l.typ)
	}
}

// ownThread returns a thread of a file of candid's: by its index among the file's threads, because
// two may have the same number and name one after the other, or by its name if the index is
// missing.
func (r *reader) ownThread(l *list, tid int, name string) uint32 {
	if l.number == 0 {
		return r.b.NamedThread(l.pid, tid, name)
	}
	thread, ok := r.threads[l.number]
	if !ok {
		if r.threads == nil {
			r.threads = make(map[int64]uint32)
		}
		thread = r.b.NewThread(l.pid, tid, name)
		r.threads[l.number] = thread
	}
	return thread
}

// event returns the index of a profile's event, and the size of a unit of its weights.
func (r *reader) event(l *list) (uint16, float64, bool) {
	scale, ok := scales[l.unit]
	if !ok {
		r.s.err = fmt.Errorf("%w: weights in %q", ErrMalformed, l.unit)
		return 0, 0, false
	}
	inTime := scale.unit == "nanoseconds"
	if l.named {
		for len(r.counts) <= l.event && len(r.counts) < 1<<12 {
			r.counts, r.totals, r.units = append(r.counts, 0), append(r.totals, 0), append(r.units, "")
		}
		if l.event >= len(r.counts) {
			r.s.err = errTooLarge
			return 0, 0, false
		}
		return uint16(l.event), scale.times, inTime
	}
	for i, u := range r.units {
		if u == scale.unit {
			return uint16(i), scale.times, inTime
		}
	}
	r.units = append(r.units, scale.unit)
	r.counts, r.totals = append(r.counts, 0), append(r.totals, 0)
	return uint16(len(r.units) - 1), scale.times, inTime
}

func (r *reader) put(s profile.Sample) {
	if r.b.Single() >= maxSamples {
		r.s.err = errTooLarge
		return
	}
	if err := r.b.Err(); err != nil {
		r.s.err = err
		return
	}
	r.counts[s.Event]++
	r.totals[s.Event] += float64(s.Weight)
	r.b.Add(s)
}

func (r *reader) sampled(l *list, thread uint32) {
	event, times, inTime := r.event(l)
	if r.s.err != nil {
		return
	}
	if len(l.weights) != 0 && len(l.weights) != len(l.nodes) || len(l.times) != 0 && len(l.times) != len(l.nodes) || len(l.state) != 0 && len(l.state) != len(l.nodes) {
		r.s.err = fmt.Errorf("%w: %d samples with %d weights", ErrMalformed, len(l.nodes), len(l.weights))
		return
	}
	gate := r.b.Meter().Gate()
	for _, k := range l.skids {
		if int64(k.sample) >= int64(len(l.nodes)) {
			r.s.err = fmt.Errorf("%w: where sample %d of %d came late", ErrMalformed, k.sample, len(l.nodes))
			return
		}
		if r.raw.Len() > maxNodes {
			r.s.err = errTooLarge
			return
		}
		if err := gate.Pass(); err != nil {
			r.s.err = err
			return
		}
		for _, f := range k.frames {
			l.nodes[k.sample] = r.raw.Child(l.nodes[k.sample], f)
		}
	}
	at := 0.0
	for i, node := range l.nodes {
		weight := 1.0
		if len(l.weights) > 0 {
			weight = l.weights[i] * times
		}
		s := profile.Sample{Thread: thread, Event: event, Node: node, Weight: r.count(weight)}
		switch {
		case len(l.times) > 0:
			s.Time = l.times[i]
		case inTime && !l.named:
			s.Time = r.count(at)
		}
		if len(l.state) > 0 {
			k := l.state[i]
			if int64(k) >= int64(len(l.did)) {
				r.s.err = fmt.Errorf("%w: a state with number %d of %d", ErrMalformed, k, len(l.did))
				return
			}
			s.State, s.Syscall = l.did[k].state, l.did[k].syscall
		}
		at += weight
		r.put(s)
	}
}

// evented adds a sample for each interval between two changes of the stack.
func (r *reader) evented(l *list, thread uint32) {
	event, times, _ := r.event(l)
	var stack []change
	nodes := []uint32{profile.RootNode}
	last := l.start
	gate := r.b.Meter().Gate()
	for _, c := range l.changes {
		r.s.err = cmp.Or(r.s.err, gate.Pass())
		if r.s.err != nil {
			return
		}
		if c.at > last {
			if len(stack) > 0 {
				r.put(profile.Sample{Time: r.count((last - l.start) * times), Weight: r.count((c.at - last) * times), Thread: thread, Event: event, Node: nodes[len(nodes)-1]})
			}
			last = c.at
		}
		switch n := len(stack); {
		case !c.close && (n >= maxStack || r.raw.Len() > maxNodes):
			r.s.err = errTooLarge
		case !c.close:
			stack = append(stack, c)
			nodes = append(nodes, r.raw.Child(nodes[n], c.frame))
		case n == 0 || stack[n-1].frame != c.frame:
			r.s.err = fmt.Errorf("%w: %q leaves frame %d, which is not the innermost", ErrMalformed, l.name, c.frame)
		default:
			stack, nodes = stack[:n-1], nodes[:n]
		}
	}
}
