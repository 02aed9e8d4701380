package pprof

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"strings"
	"time"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Limits of what a file can make a reader hold. A real recording has less than a tenth.
const (
	maxNodes   = 32 << 20
	maxSamples = 16 << 20
	// maxUnfolded is how many samples counts are unfolded into at most: a few bytes can stand for
	// very many.
	maxUnfolded = 4 << 20
)

// Parse reads an uncompressed profile, written by this package or by anything else that writes
// pprof. The result has passed Check. Samples that were merged when it was written become as many
// samples again, without times.
func Parse(data []byte) (*profile.Profile, error) { return ParseInto(profile.NewBuilder(), data) }

// ParseInto is Parse with an empty Builder of the caller, which may keep samples differently.
func ParseInto(b *profile.Builder, data []byte) (*profile.Profile, error) {
	r := &reader{
		b:         b,
		gate:      b.Meter().Gate(),
		p:         b.Profile(),
		functions: map[uint64]uint32{},
		mappings:  map[uint64]place{},
		threads:   map[threadKey]uint32{},
		decoded:   map[string]circumstance{},
	}
	if err := r.parse(data); err != nil {
		return nil, fmt.Errorf("read pprof: %w", err)
	}
	p := b.Finish()
	if err := cmp.Or(b.Err(), p.Check()); err != nil {
		return nil, fmt.Errorf("read pprof: %w", err)
	}
	return p, nil
}

type threadKey struct {
	pid, tid int
	name     string
}

// locationTable returns the frames of a Location, innermost first, by its id. It is queried for
// every frame of every sample; ids are nearly always counted from 1.
type locationTable struct {
	low  [][]uint32
	high map[uint64][]uint32
}

const lowIDs = 1 << 20

func (t *locationTable) set(id uint64, frames []uint32) {
	if id >= lowIDs {
		if t.high == nil {
			t.high = map[uint64][]uint32{}
		}
		t.high[id] = frames
		return
	}
	if missing := int(id) + 1 - len(t.low); missing > 0 {
		t.low = append(t.low, make([][]uint32, missing)...)
	}
	t.low[id] = frames
}

func (t *locationTable) get(id uint64) []uint32 {
	if id < uint64(len(t.low)) {
		return t.low[id]
	}
	return t.high[id]
}

type reader struct {
	b       *profile.Builder
	gate    memlimit.Gate
	p       *profile.Profile // b's, without nodes and samples until the end
	ours    bool
	strings []string

	functions map[uint64]uint32 // by id: index into Funcs, module not yet set
	funcs     []profile.Func    // as written: functions' targets
	mappings  map[uint64]place  // by id
	locations locationTable
	threads   map[threadKey]uint32

	types       []profile.Event // sample types
	defaultType string
	periodType  string
	period      uint64
	countColumn int         // column that counts samples, -1 for none
	eventOf     map[int]int // by column: index into Events
	merged      bool        // counts could not be unfolded

	ids, values []uint64                // of the sample being read
	skids       []string                // of the sample that is read: labelSkid
	labels      labels                  // of the sample that is read
	decoded     map[string]circumstance // by labels.raw
	unlabeled   uint64                  // samples that lost labels
}

func (r *reader) text(i uint64) string {
	if i < uint64(len(r.strings)) {
		return r.strings[i]
	}
	return ""
}

// parse reads the file several times: its parts may be in any order, and keeping them all would
// take many times the file's size.
func (r *reader) parse(data []byte) error {
	n := 0
	c := cursor{rest: data}
	for c.next() {
		if c.field == profileStringTable {
			n++
		}
	}
	if c.err != nil {
		return c.err
	}
	if err := r.b.Meter().Room(n * int(unsafe.Sizeof(""))); err != nil {
		return err
	}
	r.strings = make([]string, 0, n)
	for c = (cursor{rest: data}); c.next(); {
		if c.field == profileStringTable {
			if err := r.gate.Pass(); err != nil {
				return err
			}
			r.strings = append(r.strings, strings.ToValidUTF8(string(c.data), "\uFFFD"))
		}
	}
	if len(r.strings) == 0 {
		return ErrWire
	}
	if err := r.head(data); err != nil {
		return err
	}
	for _, step := range []struct {
		field protowire.Number
		read  func([]byte) error
	}{
		{profileMapping, r.mapping},
		{profileFunction, r.function},
		{profileLocation, r.location},
		{profileSample, r.sample},
	} {
		for c = (cursor{rest: data}); c.next(); {
			if c.field != step.field {
				continue
			}
			if err := cmp.Or(r.gate.Pass(), step.read(c.data)); err != nil {
				return err
			}
		}
	}
	r.p.Meta.NoteUnlabeled(r.unlabeled)
	if r.merged {
		r.p.Meta.Notes = append(r.p.Meta.Notes, "the file's samples are too many to count one by one: equal ones are counted once")
	}
	return nil
}

// head reads the parts that occur once, and decides what the columns of values mean.
func (r *reader) head(data []byte) error {
	p := r.p
	var lines []string
	c := cursor{rest: data}
	for c.next() {
		switch c.field {
		case profileSampleType:
			name, unit, err := r.valueType(c.data)
			if err != nil {
				return err
			}
			if len(r.types) == maxTypes {
				return fmt.Errorf("its samples have more than %d values", maxTypes)
			}
			r.types = append(r.types, profile.NamedEvent(name, unit, 0))
		case profilePeriodType:
			name, _, err := r.valueType(c.data)
			if err != nil {
				return err
			}
			r.periodType = name
		case profilePeriod:
			r.period = c.value
		case profileTimeNanos:
			if c.value != 0 {
				p.Meta.Start = time.Unix(0, int64(c.value)).UTC()
			}
		case profileDurationNanos:
			p.Meta.Duration = max(time.Duration(c.value), 0)
		case profileDefaultSampleType:
			r.defaultType = r.text(c.value)
		case profileComment:
			r.ids, _ = c.numbers(r.ids[:0], maxComments)
			for _, i := range r.ids {
				if len(lines) == maxComments {
					break
				}
				if line := r.text(i); !silentRemark(line) {
					lines = append(lines, line)
				}
			}
		}
	}
	if c.err != nil {
		return c.err
	}
	for _, s := range r.strings {
		if silentRemark(s) {
			lines = append(lines, s)
		}
	}
	if r.ours = parseComments(lines, p); !r.ours {
		p.Meta.Notes = append(p.Meta.Notes, "another program wrote this file: it does not say what was lost, nor how certain the stacks are")
	}
	for i, t := range p.Threads {
		k := threadKey{t.PID, t.TID, t.Name}
		if _, ok := r.threads[k]; !ok {
			r.threads[k] = uint32(i)
		}
	}
	r.columns(p)
	return nil
}

func (r *reader) mapping(data []byte) error {
	var id uint64
	var name string
	c := cursor{rest: data}
	for c.next() {
		switch c.field {
		case mappingID:
			id = c.value
		case mappingFilename:
			name = r.text(c.value)
		}
	}
	r.mappings[id] = parseMapping(name)
	return c.err
}

func (r *reader) function(data []byte) error {
	var id uint64
	var f profile.Func
	var raw string
	c := cursor{rest: data}
	for c.next() {
		switch c.field {
		case functionID:
			id = c.value
		case functionName:
			f.Name = r.text(c.value)
		case functionSystemName:
			raw = r.text(c.value)
		case functionFilename:
			f.File = r.text(c.value)
		case functionStartLine:
			f.Start = int32(min(c.value, math.MaxInt32))
		}
	}
	if f.Name == "" {
		f.Name, raw = raw, ""
	}
	// In candid's files it is the raw name followed by the signature, see writer.function.
	if rest, ok := strings.CutPrefix(raw, f.Name); r.ours && ok {
		raw, f.Signature = "", rest
	} else if at := strings.IndexByte(raw, '('); r.ours && at > 0 {
		raw, f.Signature = raw[:at], raw[at:]
	}
	if raw != f.Name {
		f.Raw = raw
	}
	if c.err != nil {
		return c.err
	}
	if at, ok := r.functions[id]; ok {
		r.funcs[at] = f
		return nil
	}
	r.functions[id] = uint32(len(r.funcs))
	r.funcs = memlimit.Append(r.b.Meter(), r.funcs, f)
	return r.b.Err()
}

func (r *reader) location(data []byte) error {
	var id, addr uint64
	var pl place
	type line struct {
		function uint64
		line     uint64
	}
	var lines []line
	c := cursor{rest: data}
	for c.next() {
		switch c.field {
		case locationID:
			id = c.value
		case locationMapping:
			pl = r.mappings[c.value]
		case locationAddress:
			addr = c.value
		case locationLine:
			var l line
			lc := cursor{rest: c.data}
			for lc.next() {
				switch lc.field {
				case lineFunction:
					l.function = lc.value
				case lineLine:
					l.line = lc.value
				}
			}
			if lc.err != nil {
				return lc.err
			}
			lines = memlimit.Append(r.b.Meter(), lines, l)
			if err := r.gate.Pass(); err != nil {
				return err
			}
		}
	}
	if c.err != nil {
		return c.err
	}
	frame := profile.Frame{BCI: -1, Kind: pl.kind, Prov: pl.prov, Flags: pl.flags, Addr: addr}
	if len(lines) == 0 {
		frame.Func = r.b.Func(profile.Func{Name: fmt.Sprintf("%s+%#x", path.Base(pl.module), addr), Module: pl.module, NoName: true})
		r.locations.set(id, []uint32{r.b.Frame(frame)})
		return nil
	}
	frames := make([]uint32, 0, len(lines))
	for i, l := range lines {
		if err := r.gate.Pass(); err != nil {
			return err
		}
		f := profile.Func{Name: "[unknown]", NoName: true}
		if at, ok := r.functions[l.function]; ok {
			f = r.funcs[at]
			f.NoName = f.Name == "" || r.ours && pl.module != "" && strings.HasPrefix(f.Name, path.Base(pl.module)+"+0x")
		}
		f.Module = pl.module
		in := frame
		in.Func = r.b.Func(f)
		in.Line = int32(min(l.line, 1<<31-1))
		if i < len(lines)-1 {
			in.Kind = walk.KindInlined
		}
		frames = append(frames, r.b.Frame(in))
	}
	r.locations.set(id, frames)
	return nil
}
