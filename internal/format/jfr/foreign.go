package jfr

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/redact"
	"github.com/candid-profiler/candid/internal/walk"
)

// eventReader reads events of one type.
type eventReader struct {
	slots slots
	seen  *observationPlan
	row   int // of foreignEvents, or of profile.ObservationKinds
	read  func(r *reader, c *chunk, h *eventReader, cur *cursor) error
}

// Slots in which foreignSample finds what it needs.
const (
	foreignTime = iota
	foreignThread
	foreignTrace
	foreignThreadState
	foreignWeight
	foreignFailed
	foreignClass
)

// unit is what the weight of a foreign event means.
type unit uint8

const (
	counted  unit = iota // each is one sample of a period that a setting may define
	inTicks              // a duration in ticks
	inBytes              // bytes
	repeated             // so many samples of that period
)

type foreignEvent struct {
	typ, event     string
	kind           profile.EventKind
	thread, weight string
	unit           unit
	state          profile.State // unless the event has one
	class          string        // the field that says the class of what is allocated or waited for
}

// foreignEvents are the samples of other profilers: of the JDK (jdk.jfr's metadata.xml describes
// them) and of async-profiler (src/jfrMetadata.cpp). They are in the order in which a profile lists
// its events; several types may be the same event.
var foreignEvents = []foreignEvent{
	{"jdk.CPUTimeSample", "cpu", profile.EventCPU, "eventThread", "samplingPeriod", inTicks, profile.StateRunning, ""},
	{nameExecutionSample, "execution", profile.EventExecution, "sampledThread", "", counted, profile.StateUnknown, ""},
	{nameWallClockSample, "wall", profile.EventWall, "sampledThread", "samples", repeated, profile.StateUnknown, ""},
	{"jdk.NativeMethodSample", "native-method", profile.EventOther, "sampledThread", "", counted, profile.StateUnknown, ""},
	{"jdk.ObjectAllocationSample", "alloc", profile.EventAlloc, "eventThread", "weight", inBytes, profile.StateRunning, "objectClass"},
	{"jdk.ObjectAllocationInNewTLAB", "alloc-tlab", profile.EventAlloc, "eventThread", "tlabSize", inBytes, profile.StateRunning, "objectClass"},
	{"jdk.ObjectAllocationOutsideTLAB", "alloc-tlab", profile.EventAlloc, "eventThread", "allocationSize", inBytes, profile.StateRunning, "objectClass"},
	{"jdk.JavaMonitorEnter", "lock", profile.EventLock, "eventThread", "duration", inTicks, profile.StateBlocked, "monitorClass"},
	{"jdk.ThreadPark", "park", profile.EventWait, "eventThread", "duration", inTicks, profile.StateParked, "parkedClass"},
	{"jdk.JavaMonitorWait", "wait", profile.EventWait, "eventThread", "duration", inTicks, profile.StateWaiting, "monitorClass"},
	{"jdk.ThreadSleep", "sleep", profile.EventWait, "eventThread", "duration", inTicks, profile.StateSleeping, ""},
	{"profiler.NativeLock", "native-lock", profile.EventLock, "eventThread", "duration", inTicks, profile.StateBlocked, ""},
	{"profiler.Malloc", "malloc", profile.EventAlloc, "eventThread", "size", inBytes, profile.StateRunning, ""},
	{"profiler.LiveObject", "live", profile.EventLive, "eventThread", "allocationSize", inBytes, profile.StateUnknown, "objectClass"},
}

// wallRow is the row of wall-clock samples.
var wallRow = slices.IndexFunc(foreignEvents, func(e foreignEvent) bool { return e.typ == nameWallClockSample })

// foreignState is what is known of a recording that candid did not write.
type foreignState struct {
	events  []int // the profile's events so far, as rows
	eventOf map[string]uint16
	threads map[foreignID]uint32
	periods map[string]uint64 // ns, by event and setting
	async   bool              // async-profiler recorded it
	sampled string            // async-profiler's setting event, which candid writes too: the event of ExecutionSamples
	pid     int
	lost    uint64

	unlabeled uint64 // samples whose class is not kept as a label
}

// eventReaders creates the readers of the events that candid needs.
func (s *schema) eventReaders(rs *readers) error {
	rs.events = map[uint64]*eventReader{}
	add := func(name string, numbers, texts, needed []string, h eventReader) error {
		t := s.byName[name]
		if t == nil || t.super != superEvent || !t.hasAll(needed) {
			return nil
		}
		var err error
		if h.slots, err = s.slotsOf(t, numbers, texts); err != nil {
			return err
		}
		if t.id < uint64(len(rs.few)) {
			rs.few[t.id] = &h
		}
		rs.events[t.id] = &h
		return nil
	}
	type want struct {
		name           string
		numbers, texts []string
		read           func(r *reader, c *chunk, h *eventReader, cur *cursor) error
		since          int // numbers from here on are missing in files of some versions; 0: none is
	}
	var list []want
	if rs.ours {
		fields := []string{"startTime", "sampledThread", "weight", "node", "kind", "stackTrace"}
		list = []want{
			{nameExecutionSample, fields, nil, ownSample, 0},
			{nameWallClockSample, fields, nil, ownSample, 0},
			{nameSample, fields, nil, ownSample, 0},
			{nameRecording, []string{"began", "recorded", "unfinished"}, []string{"version", "engine", "description", "command", "host"}, ownRecording, 2},
			{nameNote, []string{"number"}, []string{"text"}, ownNote, 0},
			{nameEvent, []string{"number", "period"}, []string{"name", "unit"}, ownEvent, 0},
			{nameActiveSetting, []string{"id"}, []string{"name", "value"}, ownSetting, 0},
			{nameProcess, []string{"number", "pid"}, []string{"command", "runtime"}, ownProcess, 0},
			{nameThreadInfo, []string{"number", "pid", "tid", "cpuTime"}, []string{"name", "osName", "kind"}, ownThreadInfo, 0},
			{nameLosses, []string{"lost", "throttled"}, nil, ownLosses, 0},
			{nameCost, []string{"copying", "targetCpu", "ownCpu", "memory", "firstWalked", "samples", "recorded"}, nil, ownCost, 5},
		}
	} else {
		list = []want{
			{"jdk.JVMInformation", []string{"pid"}, []string{"jvmName", "jvmVersion", "jvmArguments", "javaArguments"}, jvmInformation, 0},
			{nameActiveSetting, []string{"id"}, []string{"name", "value"}, activeSetting, 0},
			{"jdk.CPUTimeSamplesLost", []string{"lostSamples"}, nil, samplesLost, 0},
		}
		for i, e := range foreignEvents {
			fields := []string{"startTime", e.thread, "stackTrace", "state", cmp.Or(e.weight, "weight"), "failed", cmp.Or(e.class, "objectClass")}
			if err := add(e.typ, fields, nil, fields[:3], eventReader{row: i, read: foreignSample}); err != nil {
				return err
			}
		}
		if t := s.byName[nameExecutionSample]; t != nil {
			rs.executionSampleType = t.id
		}
	}
	for _, w := range list {
		needed := w.numbers
		if w.since > 0 {
			needed = needed[:w.since]
		}
		if err := add(w.name, w.numbers, w.texts, needed, eventReader{read: w.read}); err != nil {
			return err
		}
	}
	return s.observationReaders(rs)
}

// hasAll reports whether the type has fields of all these names. A sample must: a sample of no
// bytes would take memory for nothing.
func (t *class) hasAll(names []string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(t.fields, func(f field) bool { return f.name == name }) {
			return false
		}
	}
	return true
}

// foreignSample reads a sample of another profiler.
func foreignSample(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	if cur.err != nil {
		return cur.err
	}
	row := &foreignEvents[h.row]
	st := r.threadState(c, rec.n[foreignThreadState])
	event := h.row
	if row.typ == nameExecutionSample && st != profile.StateUnknown && r.foreign.twofold() {
		event = wallRow
	}
	s := profile.Sample{Time: c.ns(rec.n[foreignTime]), Weight: rec.n[foreignWeight], State: row.state, Event: r.foreignEvent(event)}
	switch row.unit {
	case counted:
		s.Weight = 1
	case inTicks:
		s.Weight = c.span(s.Weight)
	case repeated:
		s.Weight = max(s.Weight, 1)
	}
	if row.unit == inTicks && row.state > profile.StateRunning {
		s.Time = later(s.Time, s.Weight) // their time is when they began
	}
	if st != profile.StateUnknown && row.state == profile.StateUnknown {
		s.State = st
	}
	s.Thread = r.foreignThread(c, rec.n[foreignThread])
	s.Syscall = r.classLabel(c, rec.n[foreignClass])
	var truncated bool
	var err error
	if s.Node, truncated, err = r.foreignStack(c, rec.n[foreignTrace]); err != nil {
		return err
	}
	switch {
	case s.Node == root || rec.n[foreignFailed] != 0:
		s.End = walk.EndUnread
	case truncated:
		s.End = walk.EndTruncated
	}
	r.latest = max(r.latest, s.Time)
	r.b.Add(s)
	return nil
}

// later returns a time some ns later, without overflow.
func later(t, ns uint64) uint64 { return t + min(ns, math.MaxInt64-min(t, math.MaxInt64)) }

// foreignEvent returns the event of a row, for now by the order of first occurrence.
func (r *reader) foreignEvent(row int) uint16 {
	f := &r.foreign
	name := foreignEvents[row].event
	i, ok := f.eventOf[name]
	if !ok {
		if f.eventOf == nil {
			f.eventOf = map[string]uint16{}
		}
		i = uint16(len(f.events))
		f.events = append(f.events, row)
		f.eventOf[name] = i
	}
	return i
}

// threadState returns a thread's state by a constant.
func (r *reader) threadState(c *chunk, id uint64) profile.State {
	t, ok := c.pools.states.get(id)
	if !ok {
		return profile.StateUnknown
	}
	name := c.pools.text(t)
	for _, s := range []struct {
		prefix string
		state  profile.State
	}{
		{"STATE_RUNNABLE", profile.StateRunning},
		{"STATE_SLEEPING", profile.StateSleeping},
		{"STATE_IN_OBJECT_WAIT", profile.StateWaiting},
		{"STATE_PARKED", profile.StateParked},
		{"STATE_BLOCKED_ON_MONITOR_ENTER", profile.StateBlocked},
	} {
		if strings.HasPrefix(name, s.prefix) {
			return s.state
		}
	}
	return profile.StateUnknown
}

// foreignID identifies a thread.
type foreignID struct {
	osID, javaID uint64
	name         string
}

func (r *reader) foreignThread(c *chunk, id uint64) uint32 {
	t, ok := c.pools.threads.get(id)
	if ok && t.known {
		return t.index
	}
	osName, javaName := c.pools.text(t.osName), c.pools.text(t.javaName)
	name := cmp.Or(javaName, osName, "[unknown]")
	k := foreignID{t.osID, t.javaID, name}
	f := &r.foreign
	i, seen := f.threads[k]
	if !seen {
		if f.threads == nil {
			f.threads = map[foreignID]uint32{}
		}
		i = r.b.NewThread(f.pid, int(int32(t.osID)), name)
		th := &r.b.Threads()[i]
		th.OSName = cmp.Or(osName, name)
		if javaName != "" {
			th.Kind = "java"
		}
		f.threads[k] = i
	}
	if ok {
		t.known, t.index = true, i
		c.pools.threads.put(id, t)
	}
	return i
}

func jvmInformation(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	if cur.err != nil || len(r.b.Processes()) > 0 {
		return cur.err
	}
	args := strings.TrimSpace("java " + redact.Line(c.pools.text(rec.t[2])))
	p := profile.Process{PID: int(int32(rec.n[0])), Command: strings.TrimSpace(args + " " + redact.Line(c.pools.text(rec.t[3])))}
	// "OpenJDK 64-Bit Server VM (17.0.15+6-Debian) for linux-amd64 JRE (17.0.15+6), built on ..."
	if _, rest, ok := strings.Cut(c.pools.text(rec.t[1]), "JRE ("); ok {
		version, _, _ := strings.Cut(rest, ")")
		version, _, _ = strings.Cut(version, "+")
		if old, ok := strings.CutPrefix(version, "1."); ok { // 1.8.0_504-8u504-ga-1-b01
			old, _, _ = strings.Cut(old, "-")
			version = strings.ReplaceAll(old, "_", ".")
		}
		p.Runtime = "hotspot " + version
	}
	r.b.AddProcess(p)
	r.b.Meta().Command = p.Command
	r.foreign.pid = p.PID
	return nil
}

// activeSetting keeps settings that say what samples stand for.
func activeSetting(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	name, value := c.pools.text(rec.t[0]), c.pools.text(rec.t[1])
	f := &r.foreign
	if f.periods == nil {
		f.periods = map[string]uint64{}
	}
	if name == "jstackdepth" { // async-profiler always writes it
		f.async = true
	}
	// The JDK writes "20 ms" for each event, async-profiler a number of ns for all.
	if ns, err := strconv.ParseUint(value, 10, 63); err == nil {
		if name == "interval" || name == "wall" {
			f.periods[name] = ns
		}
		return nil
	}
	switch name {
	case "event":
		f.sampled = value
	case "period":
		d, err := time.ParseDuration(strings.ReplaceAll(value, " ", ""))
		if t := r.schema.byID[rec.n[0]]; t != nil && err == nil && d > 0 {
			for i := range foreignEvents {
				if foreignEvents[i].typ == t.name {
					f.periods[foreignEvents[i].event] = uint64(d)
				}
			}
		}
	}
	return nil
}

func samplesLost(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	r.foreign.lost += min(rec.n[0], math.MaxUint32)
	return nil
}
