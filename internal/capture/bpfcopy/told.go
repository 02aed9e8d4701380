package bpfcopy

// told is what was handed over of sleeps that go on, by thread: what comes of them
// when they end is the rest.
type told map[uint32]toldSleep

type toldSleep struct {
	since uint64 // when the thread left the CPU, ns
	until uint64 // what came before was handed over
	over  bool   // so was all, because recording ended
}

// maxTold bounds the threads of which that is kept.
const maxTold = 1 << 17

// until is from when on time of a sleep has not been handed over, and whether any
// of it was.
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

// over says that nothing more may come of the thread.
func (t told) over(tid uint32) { t[tid] = toldSleep{over: true} }

// slack is how much later than it began a sleep may seem to have begun, ns: by what
// the kernel charges before a switch, and the time that a program takes.
const slack = 20_000_000

// rest takes off what was handed over of a sleep of so many ns that a record of the
// time now ends; started is when recording began.
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
		return 0, false // it is another one: the record of that one was lost
	}
	return s.until - min(s.until, max(s.since, started)), false
}
