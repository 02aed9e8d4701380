// Package otlp writes profiles in OpenTelemetry's format: a ProfilesData message of the profiles
// signal, which is in development, so that receivers accept the versions that they were made for.
// Samples keep their times if it is known when the recording began, otherwise they are summed up.
package otlp

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/bits"
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
	wr := &writer{p: p, d: newDictionary(), chains: locations.New(p), functions: make([]uint64, len(p.Funcs)), stacks: map[uint32]uint64{},
		attributes: map[locations.Group]protobuf.Message{}}
	wr.places = make([]uint64, wr.chains.Len())
	groups := wr.groups()
	wr.last = p.Latest()
	wr.timed = wr.last > 0 && !p.Meta.Start.IsZero()
	list := wr.resources(groups.List())
	out := bufio.NewWriterSize(w, 64<<10)
	// A bufio.Writer keeps its first error for Flush.
	wr.write(out, list, groups)
	size := 0
	tables := wr.d.parts()
	for _, t := range tables {
		size += len(t)
	}
	var head protobuf.Message
	head.Head(dataDictionary, size)
	out.Write(head)
	for _, t := range tables {
		out.Write(t)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write otlp: %w", err)
	}
	return nil
}

type writer struct {
	p         *profile.Profile
	d         *dictionary
	chains    locations.Chains
	places    []uint64          // locations by chain, 0: not written
	functions []uint64          // by index into Funcs, 0: not written
	stacks    map[uint32]uint64 // by node
	last      uint64            // the time of the last sample
	timed     bool
	list      []uint64
	sample    protobuf.Message
	// attributes are those of samples, by everything that is written of them beside their stack.
	attributes map[locations.Group]protobuf.Message
}

// part is what becomes a Profile: a process's samples of an event.
type part struct {
	pid   int
	event uint16
}

// piece is a part of the file: bytes, followed by a Profile's samples, of so many groups, which are
// made when they are written: all at once they would take more memory than everything else.
type piece struct {
	b      protobuf.Message
	groups int
}

// part returns the part to which a group belongs.
func (w *writer) part(of *profile.Group) part { return part{w.p.Threads[of.Thread].PID, of.Event} }

// groups groups the samples: those of the process with most of them first, because viewers show
// that one.
func (w *writer) groups() *profile.Groups {
	groups := profile.GroupsOf(w.p, uvarintLen)
	counts := map[int]int{}
	for _, of := range groups.List() {
		counts[w.part(&of).pid] += of.Samples
	}
	groups.Sort(func(a, b *profile.Group) int {
		if x, y := w.part(a), w.part(b); x != y {
			return cmp.Or(cmp.Compare(counts[y.pid], counts[x.pid]), cmp.Compare(x.pid, y.pid), cmp.Compare(x.event, y.event))
		}
		return locations.GroupOf(&a.Sample).Compare(locations.GroupOf(&b.Sample))
	})
	return groups
}

// resources makes the ResourceProfiles: one for each process.
func (w *writer) resources(list []profile.Group) []piece {
	var out []piece
	for len(list) > 0 {
		pid := w.part(&list[0]).pid
		var own, scope protobuf.Message
		own.Text(scopeName, "candid")
		own.Text(scopeVersion, strings.ToValidUTF8(w.p.Meta.Version, "\uFFFD"))
		scope.Bytes(scopeProfilesScope, own)
		var profiles []piece
		size := len(scope)
		for len(list) > 0 && w.part(&list[0]).pid == pid {
			of, n := w.part(&list[0]), 1
			for n < len(list) && w.part(&list[n]) == of {
				n++
			}
			before, behind, samples := w.profile(of, list[:n])
			var head protobuf.Message
			head.Head(scopeProfilesProfiles, len(before)+samples+len(behind))
			profiles = append(profiles, piece{append(head, before...), n}, piece{b: behind})
			size += len(head) + len(before) + samples + len(behind)
			list = list[n:]
		}
		var m, rp, head protobuf.Message
		rp.Bytes(resourceProfilesResource, w.resource(pid))
		rp.Head(resourceProfilesScope, size)
		head.Head(dataResourceProfiles, len(rp)+size)
		m = append(append(append(m, head...), rp...), scope...)
		out = append(append(out, piece{b: m}), profiles...)
	}
	return out
}

// resource returns a Resource that describes a process.
func (w *writer) resource(pid int) protobuf.Message {
	var m protobuf.Message
	add := func(key, text string, number int64) {
		if text == "" && number == 0 {
			return
		}
		var kv protobuf.Message
		kv.Text(keyValueKey, key)
		kv.Bytes(keyValueValue, value(text, number))
		m.Bytes(resourceAttributes, kv)
	}
	command, runtime := "", ""
	for _, p := range w.p.Processes {
		if p.PID == pid {
			command, runtime = p.Command, p.Runtime // the last one, if the number was reused
		}
	}
	if program, _, _ := strings.Cut(command, " "); program != "" {
		// OpenTelemetry's default name for services without one.
		add(attrService, "unknown_service:"+path.Base(program), 0)
	}
	add(attrHost, w.p.Meta.Host, 0)
	add(attrPID, "", int64(pid))
	add(attrCommand, command, 0)
	add(attrRuntime, runtime, 0)
	return m
}

func (w *writer) valueType(e profile.Event) protobuf.Message {
	var m protobuf.Message
	m.Uint(valueTypeType, w.d.str(e.Name))
	m.Uint(valueTypeUnit, w.d.str(e.Unit))
	return m
}

// profile makes the Profile of one event of one process: what comes before and after its samples,
// and how many bytes the samples take.
func (w *writer) profile(of part, list []profile.Group) (before, behind protobuf.Message, samples int) {
	e := w.p.Events[of.event]
	before.Bytes(profileSampleType, w.valueType(e))
	var sample protobuf.Message
	for i := range list {
		sample = w.head(sample[:0], &list[i])
		samples += len(sample) + w.size(&list[i])
	}
	m := &behind
	if start := w.p.Meta.Start; !start.IsZero() {
		m.Fixed64(profileTime, uint64(start.UnixNano()))
	}
	// Times of samples lie before the end.
	m.Uint(profileDuration, max(uint64(max(w.p.Meta.Duration, 0)), w.last+1))
	m.Bytes(profilePeriodType, w.valueType(e))
	m.Uint(profilePeriod, e.Period)
	if lost := w.p.Losses.Lost; lost > 0 {
		m.Bytes(profileAttributes, packed([]uint64{w.d.attribute(attrLost, "", int64(min(lost, 1<<62)))}))
	}
	return before, behind, samples
}

// head appends the Sample of a group, up to the samples' weights.
func (w *writer) head(m protobuf.Message, of *profile.Group) protobuf.Message {
	w.sample = w.sample[:0]
	w.sample.Uint(sampleStack, w.stack(w.p.BeforeSkid(of.Node)))
	w.sample.Bytes(sampleAttributes, w.sampleAttributes(locations.GroupOf(&of.Sample)))
	w.sample.Head(sampleValues, w.values(of))
	m.Head(profileSamples, len(w.sample)+w.size(of))
	return append(m, w.sample...)
}

// values returns how many bytes the weights of a group's samples take, or their sum does.
func (w *writer) values(of *profile.Group) int {
	if w.timed {
		return of.Size
	}
	return uvarintLen(of.Weight)
}

// size returns how many bytes of a group's Sample follow its head.
func (w *writer) size(of *profile.Group) int {
	if !w.timed {
		return w.values(of)
	}
	var stamps protobuf.Message
	stamps.Head(sampleTimestamps, 8*of.Samples)
	return w.values(of) + len(stamps) + 8*of.Samples
}

func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// write writes the pieces, and between them the samples of groups.
func (w *writer) write(out *bufio.Writer, list []piece, groups *profile.Groups) {
	left := 0
	next := func() {
		for left == 0 && len(list) > 0 {
			out.Write(list[0].b)
			left, list = list[0].groups, list[1:]
		}
	}
	next()
	var m protobuf.Message
	sample := func(of *profile.Group) {
		m = w.head(m[:0], of)
		out.Write(m)
		left--
	}
	if !w.timed {
		for _, of := range groups.List() {
			sample(&of)
			out.Write(protowire.AppendVarint(out.AvailableBuffer(), of.Weight))
			next()
		}
		return
	}
	start := uint64(w.p.Meta.Start.UnixNano())
	groups.Each(func(of *profile.Group, each func(func(time, weight uint64))) {
		sample(of)
		each(func(_, weight uint64) { out.Write(protowire.AppendVarint(out.AvailableBuffer(), weight)) })
		m = m[:0]
		m.Head(sampleTimestamps, 8*of.Samples)
		out.Write(m)
		each(func(time, _ uint64) { out.Write(protowire.AppendFixed64(out.AvailableBuffer(), start+time)) })
		next()
	})
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
	w.list = append(w.list[:0], w.d.attribute(attrTID, "", int64(t.TID)))
	add := func(key, text string) {
		if text != "" {
			w.list = append(w.list, w.d.attribute(key, text, 0))
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
