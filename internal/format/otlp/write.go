// Package otlp writes profiles in OpenTelemetry's format: a ProfilesData message of the profiles
// signal, which is in development, so that receivers accept the versions that they were made for.
// Samples are summed up. The schema would permit a value and a time for each sample, but receivers do
// not: Pyroscope refuses samples with several values, and times without values are for samples that all
// weigh the same.
package otlp

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/candid-profiler/candid/internal/format/locations"
	"github.com/candid-profiler/candid/internal/format/protobuf"
	"github.com/candid-profiler/candid/internal/profile"
)

// Is reports whether a file with this beginning is a ProfilesData message, and not a profile in
// pprof's format, whose first field is a message of two numbers.
func Is(head []byte) bool {
	if len(head) < 3 || head[0] != dataResourceProfiles<<3|byte(protowire.BytesType) {
		return false
	}
	_, n := protowire.ConsumeVarint(head[1:])
	if n < 0 || 1+n >= len(head) {
		return false
	}
	first := head[1+n]
	return first == resourceProfilesResource<<3|byte(protowire.BytesType) || first == resourceProfilesScope<<3|byte(protowire.BytesType)
}

// Write writes p, which must have passed Check or come from a Builder. The output depends only on
// p.
func Write(w io.Writer, p *profile.Profile) error {
	wr := newWriter(p)
	out := bufio.NewWriterSize(w, 64<<10)
	// A bufio.Writer keeps its first error for Flush.
	for _, r := range wr.samples() {
		var own protobuf.Message
		own.Bytes(resourceProfilesResource, wr.resource(r.pid))
		for _, part := range r.parts {
			own.Bytes(resourceProfilesScope, wr.scope(part.event, part.samples))
		}
		var head protobuf.Message
		head.Head(dataResourceProfiles, len(own))
		out.Write(head)
		out.Write(own)
	}
	wr.d.write(out)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write otlp: %w", err)
	}
	return nil
}

// Attribute is an attribute of a resource.
type Attribute struct{ Key, Value string }

// Sum is the weight of all samples of a stack.
type Sum struct {
	Node   uint32
	Weight uint64
}

// Sums returns a message of one resource with sums of p's first event over p's stacks, and nothing of
// p's own samples: what is sent to a server, as an ExportProfilesServiceRequest, which has the fields of
// a ProfilesData message.
func Sums(p *profile.Profile, resource []Attribute, sums []Sum) []byte {
	wr := newWriter(p)
	wr.bare = true
	var of, samples, own, request protobuf.Message
	for _, a := range resource {
		attribute(&of, a.Key, a.Value, 0)
	}
	for _, s := range sums {
		if s.Weight > 0 {
			wr.sample(&samples, s.Node, nil, s.Weight)
		}
	}
	own.Bytes(resourceProfilesResource, of)
	own.Bytes(resourceProfilesScope, wr.scope(0, samples))
	request.Bytes(dataResourceProfiles, own)
	var b strings.Builder
	out := bufio.NewWriter(&b)
	wr.d.write(out)
	_ = out.Flush() // to memory
	return append(request, b.String()...)
}

type writer struct {
	p         *profile.Profile
	d         *dictionary
	chains    locations.Chains
	places    []uint64          // locations by chain, 0: not written
	functions []uint64          // by index into Funcs, 0: not written
	stacks    map[uint32]uint64 // by node
	list      []uint64
	keys      []string // of the attributes in list
	one       protobuf.Message
	bare      bool // Sums
	// attributes are those of samples, by everything that is written of them beside their stack.
	attributes map[locations.Group]protobuf.Message
}

func newWriter(p *profile.Profile) *writer {
	w := &writer{p: p, d: newDictionary(), chains: locations.New(p), functions: make([]uint64, len(p.Funcs)), stacks: map[uint32]uint64{},
		attributes: map[locations.Group]protobuf.Message{}}
	w.places = make([]uint64, w.chains.Len())
	return w
}

// part is what becomes a Profile: a process's samples of an event.
type part struct {
	event   uint16
	samples protobuf.Message
}

// resource is what becomes a ResourceProfiles: the parts of a process.
type resource struct {
	pid   int
	n     uint64 // samples
	parts []*part
}

// samples returns the samples, encoded: those of the process with most of them first, because viewers
// show that one.
func (w *writer) samples() []*resource {
	var list []*resource
	byPID := map[int]*resource{}
	for g, c := range locations.Sums(w.p) {
		pid := w.p.Threads[g.Thread].PID
		r := byPID[pid]
		if r == nil {
			r = &resource{pid: pid}
			byPID[pid] = r
			list = append(list, r)
		}
		i := slices.IndexFunc(r.parts, func(p *part) bool { return p.event == g.Event })
		if i < 0 {
			i = len(r.parts)
			r.parts = append(r.parts, &part{event: g.Event})
		}
		r.n += c.Samples
		w.sample(&r.parts[i].samples, w.p.BeforeSkid(g.Node), w.sampleAttributes(g), c.Weight)
	}
	for _, r := range list {
		slices.SortFunc(r.parts, func(a, b *part) int { return cmp.Compare(a.event, b.event) })
	}
	slices.SortFunc(list, func(a, b *resource) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.pid, b.pid)) })
	return list
}

// attribute adds an attribute to a resource, unless it is empty.
func attribute(m *protobuf.Message, key, text string, number int64) {
	if text == "" && number == 0 {
		return
	}
	var kv protobuf.Message
	kv.Text(keyValueKey, key)
	kv.Bytes(keyValueValue, value(text, number))
	m.Bytes(resourceAttributes, kv)
}

// resource returns a Resource that describes a process.
func (w *writer) resource(pid int) protobuf.Message {
	var m protobuf.Message
	command, runtime := "", ""
	for _, p := range w.p.Processes {
		if p.PID == pid {
			command, runtime = p.Command, p.Runtime // the last one, if the number was reused
		}
	}
	if program, _, _ := strings.Cut(command, " "); program != "" {
		// OpenTelemetry's default name for services without one.
		attribute(&m, attrService, "unknown_service:"+path.Base(program), 0)
	}
	attribute(&m, attrHost, w.p.Meta.Host, 0)
	attribute(&m, attrPID, "", int64(pid))
	attribute(&m, attrCommand, command, 0)
	attribute(&m, attrRuntime, runtime, 0)
	return m
}

// scope returns a ScopeProfiles of one Profile. Its scope has the name of the type of the profile:
// Parca takes it for that.
func (w *writer) scope(event uint16, samples protobuf.Message) protobuf.Message {
	e := &w.p.Events[event]
	name, valueName := e.TypeName()
	typ := w.valueType(valueName, e.Unit)
	var own, p, m protobuf.Message
	own.Text(scopeName, name)
	own.Text(scopeVersion, strings.ToValidUTF8(w.p.Meta.Version, "\uFFFD"))
	p.Bytes(profileSampleType, typ)
	p = append(p, samples...)
	if start := w.p.Meta.Start; !start.IsZero() {
		p.Fixed64(profileTime, uint64(start.UnixNano()))
	}
	p.Uint(profileDuration, max(uint64(max(w.p.Meta.Duration, 0)), 1))
	p.Bytes(profilePeriodType, typ)
	p.Uint(profilePeriod, e.Period)
	if lost := w.p.Losses.Lost; lost > 0 {
		p.Bytes(profileAttributes, packed([]uint64{w.d.attribute(attrLost, "", int64(min(lost, 1<<62)))}))
	}
	m.Bytes(scopeProfilesScope, own)
	m.Bytes(scopeProfilesProfiles, p)
	return m
}

func (w *writer) valueType(name, unit string) protobuf.Message {
	var m protobuf.Message
	m.Uint(valueTypeType, w.d.str(name))
	m.Uint(valueTypeUnit, w.d.str(unit))
	return m
}

// sample adds a Sample with one value.
func (w *writer) sample(m *protobuf.Message, node uint32, attributes protobuf.Message, weight uint64) {
	w.one = w.one[:0]
	w.one.Uint(sampleStack, w.stack(node))
	if len(attributes) > 0 {
		w.one.Bytes(sampleAttributes, attributes)
	}
	w.one.Bytes(sampleValues, protowire.AppendVarint(nil, weight))
	m.Bytes(profileSamples, w.one)
}

// sampleAttributes returns the thread, what it was doing, how certain the stack is, and where the
// kernel delivered the sample, if it came late (walk.Skid).
func (w *writer) sampleAttributes(g locations.Group) protobuf.Message {
	g.Event = 0
	if w.p.BeforeSkid(g.Node) == g.Node {
		g.Node = profile.RootNode
	}
	if m, ok := w.attributes[g]; ok {
		return m
	}
	t := w.p.Threads[g.Thread]
	w.list, w.keys = append(w.list[:0], w.d.attribute(attrTID, "", int64(t.TID))), append(w.keys[:0], attrTID)
	add := func(key, text string) {
		if text != "" {
			w.list, w.keys = append(w.list, w.d.attribute(key, text, 0)), append(w.keys, key)
		}
	}
	add(attrThread, t.Name)
	add(attrThreadKind, t.Kind)
	if g.State != profile.StateUnknown {
		add(attrState, g.State.String())
	}
	if g.Syscall != 0 {
		add(attrSyscall, w.p.Syscalls[g.Syscall])
	}
	switch certainty := profile.CertaintyOf(g.End, g.Flags); certainty {
	case profile.CertaintyComplete:
	case profile.CertaintyBroken:
		add(attrStack, "broken: "+g.End.String())
	default:
		add(attrStack, certainty.String())
	}
	if g.Node != profile.RootNode {
		var names []string
		for n, before := g.Node, w.p.BeforeSkid(g.Node); n != before; n = w.p.Nodes[n].Parent {
			names = append(names, w.p.Funcs[w.p.Frames[w.p.Nodes[n].Frame].Func].Name)
		}
		slices.Reverse(names)
		add(attrSkid, strings.Join(names, ";"))
	}
	if int(g.Syscall) < len(w.p.Labels) {
		for _, l := range w.p.Labels[g.Syscall] {
			switch text := l.Value(); {
			case slices.Contains(w.keys, l.Key): // keys must be unique
			case l.IsText || l.Unit != "":
				add(l.Key, text)
			default:
				w.list, w.keys = append(w.list, w.d.attribute(l.Key, "", l.Number)), append(w.keys, l.Key)
			}
		}
	}
	m := packed(w.list)
	w.attributes[g] = m
	return m
}

// stack returns the index of a node's stack.
func (w *writer) stack(node uint32) uint64 {
	if node == profile.RootNode {
		return 0
	}
	i, ok := w.stacks[node]
	if !ok {
		w.list = w.list[:0]
		for chain := range w.chains.Stack(node) {
			w.list = append(w.list, w.location(chain))
		}
		var m protobuf.Message
		m.Bytes(stackLocations, packed(w.list))
		i = w.d.stacks.put(m)
		w.stacks[node] = i
	}
	return i
}
