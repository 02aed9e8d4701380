package perfdata

import (
	"cmp"
	"slices"
)

// queue sorts records by time: perf writes the contents of each CPU's buffer, one buffer after the
// other. After the end of a round over all of them, no record comes that is older than the youngest
// one of the round before (tools/perf/util/ordered-events.c).
type queue struct {
	list  []queued
	seq   uint64
	bytes int
	room  []byte // from which bodies are cut

	youngest uint64 // latest time so far
	settled  uint64 // youngest at the end of the last round
	before   uint64 // and of the one before: if records are compressed the end of a round may be seen early
}

type queued struct {
	time, seq uint64
	rec       record
	attr      *attr
}

// maxQueued bounds the bytes that wait: real rounds have some megabytes.
const maxQueued = 64 << 20

// put adds a record that happened at a time, with a copy of its body.
func (q *queue) put(time uint64, rec record, a *attr) {
	if len(q.room) < len(rec.body) {
		q.room = make([]byte, max(1<<20, len(rec.body)))
	}
	n := copy(q.room, rec.body)
	rec.body, q.room = q.room[:n:n], q.room[n:]
	q.seq++
	q.list = append(q.list, queued{time, q.seq, rec, a}) // some 100 bytes for a record of 8 or more
	q.bytes += n + 64
	q.youngest = max(q.youngest, time)
}

// round ends a round: it passes to f, in order, the records before which no other can come.
func (q *queue) round(f func(*queued) error) error {
	until := q.before
	q.before, q.settled = q.settled, q.youngest
	return q.release(until, f)
}

// crowded passes the older half to f if too much is waiting.
func (q *queue) crowded(f func(*queued) error) error {
	if q.bytes < maxQueued {
		return nil
	}
	q.sort()
	return q.release(q.list[len(q.list)/2].time, f)
}

// rest passes everything that is left to f.
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
