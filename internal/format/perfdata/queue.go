package perfdata

import (
	"cmp"
	"slices"
)

// queue puts records in the order of time: perf writes what each CPU's buffer
// held, one buffer after the other. At the end of a round over all of them, nothing
// comes any more that is older than the youngest of the round before
// (tools/perf/util/ordered-events.c).
type queue struct {
	list  []queued
	seq   uint64
	bytes int
	room  []byte // of which bodies are cut

	youngest uint64 // of what came so far
	settled  uint64 // what youngest was at the end of the last round
	before   uint64 // and of the one before: where records are compressed the end of a round may be met early
}

type queued struct {
	time, seq uint64
	rec       record
	attr      *attr
}

// maxQueued bounds what waits: real rounds have some megabytes.
const maxQueued = 64 << 20

// put takes a record that happened at a time, with a copy of its body.
func (q *queue) put(time uint64, rec record, a *attr) {
	if len(q.room) < len(rec.body) {
		q.room = make([]byte, max(1<<20, len(rec.body)))
	}
	n := copy(q.room, rec.body)
	rec.body, q.room = q.room[:n:n], q.room[n:]
	q.seq++
	q.list = append(q.list, queued{time, q.seq, rec, a})
	q.bytes += n + 64
	q.youngest = max(q.youngest, time)
}

// round ends a round: f gets, in order, what nothing can come before any more.
func (q *queue) round(f func(*queued) error) error {
	until := q.before
	q.before, q.settled = q.settled, q.youngest
	return q.release(until, f)
}

// crowded gives f the older half if too much is waiting.
func (q *queue) crowded(f func(*queued) error) error {
	if q.bytes < maxQueued {
		return nil
	}
	q.sort()
	return q.release(q.list[len(q.list)/2].time, f)
}

// rest gives f all that is left.
func (q *queue) rest(f func(*queued) error) error { return q.release(^uint64(0), f) }

func (q *queue) sort() {
	slices.SortFunc(q.list, func(a, b queued) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.seq, b.seq)) })
}

func (q *queue) release(until uint64, f func(*queued) error) error {
	q.sort()
	n := 0
	for ; n < len(q.list) && q.list[n].time <= until; n++ {
		if err := f(&q.list[n]); err != nil {
			return err
		}
		q.bytes -= len(q.list[n].rec.body) + 64
	}
	q.list = slices.Delete(q.list, 0, n)
	return nil
}
