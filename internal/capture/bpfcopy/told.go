package bpfcopy

// told is what was handed over of sleeps that go on, by TID: when such a sleep ends, only the rest
// is handed over.
type told map[uint32]toldSleep

type toldSleep struct {
	since uint64 // when the thread left the CPU, ns
	until uint64 // time before this was handed over
	over  bool   // all was handed over, because recording ended
}

// maxTold bounds the number of threads for which that is kept.
const maxTold = 1 << 17

// until returns the time up to which a sleep was handed over, and whether any of it was.
func (t told) until(tid uint32, since, started uint64) (from uint64, known bool) {
	if s, ok := t[tid]; ok && s.since == since {
		return s.until, true
	}
	return max(since, started), false
}

func (t told) tell(tid uint32, since, until uint64) {
	if len(t) >= maxTold {
		clear(t)
	}
	t[tid] = toldSleep{since: since, until: until}
}

// over notes that nothing more may be handed over for the thread.
func (t told) over(tid uint32) { t[tid] = toldSleep{over: true} }

// slack is by how many ns a sleep may seem to have begun too late: what the kernel charges before a
// switch, and the time that a program takes.
const slack = 20_000_000

// rest subtracts what was handed over from a sleep of slept ns that a record of the time now ends;
// started is when recording began.
func (t told) rest(tid uint32, now, slept, ready, started uint64) (before uint64, over bool) {
	s, ok := t[tid]
	if !ok {
		return 0, false
	}
	if s.over {
		return 0, true
	}
	delete(t, tid)
	if s.until+slack < now-min(now, slept+ready) {
		return 0, false // this is another sleep: the record of the noted one was lost
	}
	return s.until - min(s.until, max(s.since, started)), false
}
