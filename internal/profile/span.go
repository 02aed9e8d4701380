package profile

// Spans reports whether a sample of the event in this state stands for the time before it, in which
// its thread waited: as long as its weight, ending with the sample. Any other sample stands for an
// instant.
func (e *Event) Spans(state State) bool {
	return state >= StateRunnable && e.Unit == "nanoseconds"
}

// Spans reports whether a sample stands for the time before it: see Event.Spans.
func (p *Profile) Spans(s *Sample) bool {
	return int(s.Event) < len(p.Events) && p.Events[s.Event].Spans(s.State)
}

// Within returns the part of a wait's weight that lies between two times, ns since the beginning;
// to 0 is the end. A part that would be before the beginning belongs to it: short waits are summed
// up, and then one sample stands for all of them.
func Within(time, weight, from, to uint64) uint64 {
	if to > 0 && time > to {
		weight -= min(weight, time-to)
		time = to
	}
	if from > 0 {
		weight = min(weight, time-min(time, from))
	}
	return weight
}

// Part returns how much of a sample's weight lies between two times, and whether the sample belongs
// there at all. An instant does or does not, with all of its weight; of a wait the overlapping part
// does. spans is what Event.Spans returns.
func (s *Sample) Part(spans bool, from, to uint64) (weight uint64, ok bool) {
	if !spans || s.Weight == 0 {
		return s.Weight, s.Time >= from && (to == 0 || s.Time < to)
	}
	weight = Within(s.Time, s.Weight, from, to)
	return weight, weight > 0
}
