package jfr

import (
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
)

// asyncFile returns a recording with async-profiler's settings and n ExecutionSamples of each
// state.
func asyncFile(t testing.TB, settings map[string]string, states map[byte]int) []byte {
	t.Helper()
	pools, _, metadata := parts(t, foreignFile(t))
	var events []byte
	event := func(typ byte, fields func(b []byte) []byte) {
		from := len(events)
		events = append(reserveSize(events), typ, firstTick+1)
		events = fields(events)
		putSize(events, from)
	}
	for name, value := range settings {
		event(typeActiveSetting, func(b []byte) []byte { return appendString(appendString(append(b, 0), name), value) })
	}
	for state, n := range states {
		for range n {
			event(typeExecutionSample, func(b []byte) []byte { return append(b, 1, 1, state, 0, 0, 0, 0) })
		}
	}
	return assembled(pools, events, metadata)
}

func TestAsyncProfiler(t *testing.T) {
	const ms = 1_000_000
	event := func(name string, period uint64) profile.Event {
		return profile.NamedEvent(name, "nanoseconds", period)
	}
	for _, c := range []struct {
		settings string
		states   map[byte]int
		describe string
		want     map[profile.Event]uint64 // its weight
	}{
		{"event=cpu interval=0", map[byte]int{stateDefault: 7}, "recorded by async-profiler, event cpu", map[profile.Event]uint64{event("cpu", 10*ms): 70 * ms}},
		{"event=itimer interval=1000000", map[byte]int{stateRunnable: 7}, "recorded by async-profiler, event itimer", map[profile.Event]uint64{event("itimer", ms): 7 * ms}},
		{"event=wall interval=0", map[byte]int{stateRunnable: 3, stateSleeping: 4}, "recorded by async-profiler, event wall", map[profile.Event]uint64{event("wall", 50*ms): 350 * ms}},
		{"event=cpu interval=10000000 wall=200000000", map[byte]int{stateDefault: 5, stateRunnable: 3, stateSleeping: 4}, "recorded by async-profiler, event cpu",
			map[profile.Event]uint64{event("cpu", 10*ms): 50 * ms, event("wall", 200*ms): 1400 * ms}},
		{"event=cycles interval=1000000", map[byte]int{stateDefault: 5}, "recorded by async-profiler, event cycles", map[profile.Event]uint64{{Name: "cycles", Kind: profile.EventCycles, Unit: "count", Period: 1}: 5}},
		{"alloc=0", map[byte]int{stateRunnable: 2}, "recorded by async-profiler", map[profile.Event]uint64{{Name: "execution", Kind: profile.EventExecution, Unit: "count", Period: 1}: 2}},
	} {
		settings := map[string]string{"jstackdepth": "2048"}
		for _, s := range strings.Fields(c.settings) {
			name, value, _ := strings.Cut(s, "=")
			settings[name] = value
		}
		p, err := parse(asyncFile(t, settings, c.states))
		if err != nil {
			t.Fatalf("%s: %v", c.settings, err)
		}
		got := map[profile.Event]uint64{}
		for _, s := range p.Samples {
			got[p.Events[s.Event]] += s.Weight
		}
		if len(got) != len(c.want) || p.Meta.Describe != c.describe {
			t.Errorf("%s: %v, %s", c.settings, got, p.Meta.Describe)
		}
		for e, w := range c.want {
			if got[e] != w {
				t.Errorf("%s: %v, want %d of %+v", c.settings, got, w, e)
			}
		}
	}
}

// Each kind of event that shows what takes CPU time has the type that other readers look for, but
// only one event of a recording does.
func TestEventTypes(t *testing.T) {
	for names, want := range map[string][]byte{
		"cpu wall":                  {typeExecutionSample, typeWallClockSample},
		"wall itimer":               {typeWallClockSample, typeExecutionSample},
		"cpu-clock:ppp page-faults": {typeExecutionSample, typeSample},
		"cpu execution alloc":       {typeExecutionSample, typeSample, typeSample},
		"page-faults cycles:u":      {typeSample, typeExecutionSample},
	} {
		var events []profile.Event
		for _, name := range strings.Fields(names) {
			events = append(events, profile.NamedEvent(name, "", 0))
		}
		for i := range events {
			if got := eventType(events, i); got != want[i] {
				t.Errorf("%s: event %d is of type %d, want %d", names, i, got, want[i])
			}
		}
	}
}

// The number of a kind of samples is not the type of an event: see own.
func TestKindsAreNoEvents(t *testing.T) {
	for _, def := range typeDefs {
		if (def.super == superEvent) != isEvent(uint32(def.id)) {
			t.Errorf("isEvent of %s, %d, is %t", def.name, def.id, isEvent(uint32(def.id)))
		}
	}
}
