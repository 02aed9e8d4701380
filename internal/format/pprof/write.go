package pprof

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/candid-profiler/candid/internal/format/locations"
	"github.com/candid-profiler/candid/internal/format/protobuf"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Write writes p, which must have passed Check or come from a Builder. The output depends only on
// p.
func Write(w io.Writer, p *profile.Profile) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(z, 64<<10)
	wr := &writer{
		p: p, out: out,
		strings:   map[string]uint64{"": 0},
		table:     []string{""},
		mappings:  map[place]uint64{},
		functions: make([]uint64, len(p.Funcs)),
	}
	wr.write(func() {
		wr.program()
		wr.samples()
	})
	if wr.err != nil {
		return fmt.Errorf("write pprof: %w", wr.err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write pprof: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write pprof: %w", err)
	}
	return nil
}

type writer struct {
	p   *profile.Profile
	out *bufio.Writer
	err error

	strings   map[string]uint64
	table     []string
	mappings  map[place]uint64 // ids
	functions []uint64         // ids by index into Funcs, 0: not written
	locations []uint64         // ids by chain, 0: not written
	nextFunc  uint64
	nextLoc   uint64
	chains    locations.Chains
	bare      bool             // WriteSums
	values    protobuf.Message // of the Sample that is being written
	columns   []int            // the events in the order of values; none of them counts samples; nil: one does
}

// field writes one field of the Profile message.
func (w *writer) field(field int, m protobuf.Message) {
	if w.err != nil {
		return
	}
	head := protowire.AppendTag(nil, protowire.Number(field), protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(m)))
	if _, w.err = w.out.Write(head); w.err == nil {
		_, w.err = w.out.Write(m)
	}
}

func (w *writer) number(field int, v uint64) {
	var m protobuf.Message
	m.Uint(field, v)
	if w.err == nil {
		_, w.err = w.out.Write(m)
	}
}

// str returns the index of s in the string table, which is written last.
func (w *writer) str(s string) uint64 {
	i, ok := w.strings[s]
	if !ok {
		i = uint64(len(w.table))
		w.table = append(w.table, strings.ToValidUTF8(s, "\uFFFD"))
		w.strings[s] = i
	}
	return i
}

func (w *writer) valueType(name, unit string) protobuf.Message {
	var m protobuf.Message
	m.Uint(valueTypeType, w.str(name))
	m.Uint(valueTypeUnit, w.str(unit))
	return m
}

// write writes the profile, and in it what samples writes.
func (w *writer) write(samples func()) {
	p := w.p
	events := p.Events
	if w.bare { // sums are of the first event, and of two values
		events = events[:min(len(events), 1)]
	} else {
		w.columns = columnsOf(events)
	}
	if w.columns == nil {
		w.field(profileSampleType, w.valueType("samples", "count"))
		for _, e := range events {
			w.field(profileSampleType, w.valueType(e.Name, e.Unit))
		}
	}
	for _, i := range w.columns {
		w.field(profileSampleType, w.valueType(p.Events[i].Name, p.Events[i].Unit))
	}
	samples()
	if !p.Meta.Start.IsZero() {
		w.number(profileTimeNanos, uint64(p.Meta.Start.UnixNano()))
	}
	w.number(profileDurationNanos, uint64(max(p.Meta.Duration, 0)))
	if len(p.Events) > 0 {
		e := p.Events[0]
		w.field(profilePeriodType, w.valueType(e.Name, e.Unit))
		w.number(profilePeriod, e.Period)
		w.number(profileDefaultSampleType, w.str(e.Name))
	}
	if !w.bare {
		comments, silent := remarks(p)
		for _, c := range comments {
			w.number(profileComment, w.str(c))
		}
		for _, s := range silent {
			w.str(s)
		}
	}
	for _, s := range w.table {
		w.field(profileStringTable, protobuf.Message(s))
	}
}

// program writes the first Mapping, which pprof shows as the file that was profiled: what the first
// process runs.
func (w *writer) program() {
	name := w.p.Meta.Command
	if len(w.p.Processes) > 0 && w.p.Processes[0].Command != "" {
		name = w.p.Processes[0].Command
	}
	if fields := strings.Fields(name); len(fields) > 0 {
		w.mapping(place{module: path.Base(fields[0]), kind: walk.KindNative})
	}
}

func (w *writer) samples() {
	p := w.p
	w.chains = locations.New(p)
	w.locations = make([]uint64, w.chains.Len())
	if w.columns != nil {
		w.severalValues()
		return
	}
	for g, c := range locations.Sums(p) {
		list := protowire.AppendVarint(w.values[:0], c.Samples)
		for e := range p.Events {
			if e == int(g.Event) {
				list = protowire.AppendVarint(list, c.Weight)
			} else {
				list = append(list, 0)
			}
		}
		w.values = list
		if w.sample(g); w.err != nil {
			return
		}
	}
}

// sample writes one Sample of pprof, with w.values: all samples that differ only in time.
func (w *writer) sample(g locations.Group) {
	var m, list protobuf.Message
	before := w.p.BeforeSkid(g.Node)
	for chain := range w.chains.Stack(before) {
		list = protowire.AppendVarint(list, w.location(chain))
	}
	m.Bytes(sampleLocation, list)

	m.Bytes(sampleValue, w.values)

	t := w.p.Threads[g.Thread]
	w.label(&m, labelThread, t.Name)
	w.label(&m, labelKind, t.Kind)
	w.label(&m, labelStack, qualityLabel(g.End, g.Flags))
	for n := g.Node; n != before; n = w.p.Nodes[n].Parent {
		w.label(&m, labelSkid, w.p.Funcs[w.p.Frames[w.p.Nodes[n].Frame].Func].Name)
	}
	if g.State != profile.StateUnknown {
		w.label(&m, labelState, g.State.String())
	}
	if g.Syscall != 0 {
		w.label(&m, labelCall, w.p.Syscalls[g.Syscall])
	}
	if len(w.p.Events) > 1 && w.columns == nil {
		w.label(&m, labelEvent, w.p.Events[g.Event].Name)
	}
	if w.columns == nil || t.TID != 0 || t.PID != 0 {
		w.numLabel(&m, labelTID, int64(t.TID), "id")
		w.numLabel(&m, labelPID, int64(t.PID), "id")
	}
	if int(g.Syscall) < len(w.p.Labels) {
		for _, l := range w.p.Labels[g.Syscall] {
			if l.IsText {
				w.label(&m, writtenKey(l.Key), l.Text)
			} else {
				w.numLabel(&m, writtenKey(l.Key), l.Number, l.Unit)
			}
		}
	}
	w.field(profileSample, m)
}

func (w *writer) label(m *protobuf.Message, key, value string) {
	if value == "" {
		return
	}
	var l protobuf.Message
	l.Uint(labelKey, w.str(key))
	l.Uint(labelStr, w.str(value))
	m.Bytes(sampleLabel, l)
}

// numLabel writes a label with a number. Without a unit pprof takes the key for one and guesses bytes.
func (w *writer) numLabel(m *protobuf.Message, key string, value int64, unit string) {
	var l protobuf.Message
	l.Uint(labelKey, w.str(key))
	l.Uint(labelNum, uint64(value))
	l.Uint(labelNumUnit, w.str(unit))
	m.Bytes(sampleLabel, l)
}

// location returns the id of a chain's Location, and writes it first if it is new.
func (w *writer) location(chain uint32) uint64 {
	if id := w.locations[chain]; id != 0 {
		return id
	}
	w.nextLoc++
	id := w.nextLoc
	w.locations[chain] = id
	var m protobuf.Message
	m.Uint(locationID, id)
	var outer profile.Frame
	var lines protobuf.Message
	for f := range w.chains.Frames(chain) {
		outer = *f
		var l protobuf.Message
		l.Uint(lineFunction, w.function(f.Func))
		l.Uint(lineLine, uint64(max(f.Line, 0)))
		lines.Bytes(locationLine, l)
	}
	pl := placeOf(w.p, outer)
	if w.bare {
		pl.kind, pl.flags = usualKind(pl.module), 0
	}
	m.Uint(locationMapping, w.mapping(pl))
	m.Uint(locationAddress, locations.FileAddr(outer))
	m = append(m, lines...)
	w.field(profileLocation, m)
	return id
}

func placeOf(p *profile.Profile, f profile.Frame) place {
	return place{p.Funcs[f.Func].Module, f.Kind, f.Prov, f.Flags & locations.KeptFlags}
}

func (w *writer) function(i uint32) uint64 {
	if id := w.functions[i]; id != 0 {
		return id
	}
	w.nextFunc++
	w.functions[i] = w.nextFunc
	f := &w.p.Funcs[i]
	raw := f.Raw
	if raw == "" {
		raw = f.Name
	}
	var m protobuf.Message
	m.Uint(functionID, w.nextFunc)
	m.Uint(functionName, w.str(f.Name))
	m.Uint(functionSystemName, w.str(raw+f.Signature))
	m.Uint(functionFilename, w.str(f.File))
	m.Uint(functionStartLine, uint64(max(f.Start, 0)))
	w.field(profileFunction, m)
	return w.nextFunc
}

func (w *writer) mapping(pl place) uint64 {
	if id, ok := w.mappings[pl]; ok {
		return id
	}
	name := pl.mappingName()
	id := uint64(len(w.mappings) + 1)
	w.mappings[pl] = id
	var m protobuf.Message
	m.Uint(mappingID, id)
	m.Uint(mappingFilename, w.str(name))
	// Everything is named: pprof need not open any file.
	m.Flag(mappingHasFunctions, true)
	m.Flag(mappingHasFilenames, true)
	m.Flag(mappingHasLineNumbers, true)
	m.Flag(mappingHasInlines, true)
	w.field(profileMapping, m)
	return id
}
