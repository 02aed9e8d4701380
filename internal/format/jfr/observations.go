package jfr

import (
	"encoding/binary"
	"math"

	"github.com/candid-profiler/candid/internal/profile"
)

var jvmEvents = []string{"Java Virtual Machine"}

// fieldTypes are the types of values in a file.
var fieldTypes = [...]struct {
	typ   int
	flags fieldFlags
}{
	profile.ValueCount:   {typeLong, 0},
	profile.ValueBytes:   {typeLong, dataSize},
	profile.ValueNanos:   {typeLong, timespan}, // a tick is 1 ns
	profile.ValueMillis:  {typeLong, millis},
	profile.ValueEpoch:   {typeLong, epoch},
	profile.ValueSigned:  {typeLong, 0},
	profile.ValueAddress: {typeLong, unsigned | address},
	profile.ValueThread:  {typeThread, constant},
	profile.ValueShare:   {typeFloat, share},
	profile.ValueFloat:   {typeDouble, 0},
	profile.ValueFlag:    {typeBoolean, 0},
	profile.ValueText:    {typeString, 0},
}

// observationType returns the type of the observations of a kind: the JDK's fields, in its order,
// and the process.
func observationType(kind int) typeDef {
	k, def := &profile.ObservationKinds[kind], &observationDefs[kind]
	t := typeDef{id: typeObservation + kind, name: def.name, super: superEvent, label: k.Name, category: jvmEvents, fields: []fieldDef{startTime()}}
	if def.name[0] == 'c' {
		t.category = candidEvents
	}
	if k.Lasts {
		t.fields = append(t.fields, fieldDef{"duration", typeLong, "Duration", timespan})
	}
	for i, f := range def.fields {
		of := fieldTypes[k.Values[i]]
		t.fields = append(t.fields, fieldDef{f.name, of.typ, f.label, of.flags})
	}
	t.fields = append(t.fields, fieldDef{"process", typeLong, "Process Id, 0: the Machine", 0})
	return t
}

// describedOnly returns types that have no events: the JDK's views of flags and of the recording
// require them too, and show nothing if one of them is not described.
func describedOnly() []typeDef {
	var out []typeDef
	add := func(name, label string, fields ...fieldDef) {
		id := typeObservation + len(profile.ObservationKinds) + len(out)
		out = append(out, typeDef{id: id, name: name, super: superEvent, label: label, category: jvmEvents, fields: append([]fieldDef{startTime()}, fields...)})
	}
	for kind := profile.BooleanFlag; kind <= profile.StringFlag; kind++ {
		k := &profile.ObservationKinds[kind]
		value := fieldTypes[k.Values[1]].typ
		add(observationDefs[kind].name+"Changed", k.Name+" Changed", fieldDef{"name", typeString, "Name", 0}, fieldDef{"oldValue", value, "Old Value", 0},
			fieldDef{"newValue", value, "New Value", 0}, fieldDef{"origin", typeString, "Origin", 0})
	}
	add("jdk.Shutdown", "JVM Shutdown", fieldDef{"reason", typeString, "Reason", 0})
	return out
}

// observations writes the new ones.
func (s *Stream) observations() {
	all, gone := s.c.src.Observations()
	processes, threads := s.c.src.Processes(), s.c.src.Threads()
	for ; s.observed < gone+len(all); s.observed++ {
		o := &all[s.observed-gone]
		if int(o.Kind) >= len(profile.ObservationKinds) {
			continue
		}
		k := &profile.ObservationKinds[o.Kind]
		s.latest = max(s.latest, o.Time)
		from := len(s.b)
		s.b = reserveSize(s.b)
		s.b = appendLong(s.b, uint64(typeObservation+int(o.Kind)))
		s.b = appendLong(s.b, tick(o.Time))
		if k.Lasts {
			s.b = appendLong(s.b, o.Duration)
		}
		for i, v := range o.Values {
			switch k.Values[i] {
			case profile.ValueText:
				s.b = appendString(s.b, v.Text)
			case profile.ValueThread:
				thread := uint64(0)
				if v.Number < uint64(len(threads)) {
					thread = s.c.thread(uint32(v.Number))
				}
				s.b = appendLong(s.b, thread)
			case profile.ValueFlag:
				s.b = append(s.b, byte(v.Number))
			case profile.ValueShare:
				s.b = binary.BigEndian.AppendUint32(s.b, math.Float32bits(float32(v.Share())))
			case profile.ValueFloat:
				s.b = binary.BigEndian.AppendUint64(s.b, v.Number)
			default:
				s.b = appendLong(s.b, v.Number)
			}
		}
		pid := uint64(0)
		if o.Process >= 0 && int(o.Process) < len(processes) {
			pid = uint64(processes[o.Process].PID)
		}
		s.b = appendLong(s.b, pid)
		putSize(s.b, from)
	}
}
