package bpfcopy

import (
	"cmp"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
)

// read empties the rings until ctx ends, and gives what went wrong. It has a thread of its
// own and waits for nothing but the rings: whoever walks and names what it takes out may
// have to read files, or what a target holds, for longer than a ring has room.
func (e *Engine) read(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer e.kept.wake()
	defer e.stopSampling() // what is still to be walked may take a while
	for {
		gone, err := e.waiter.Wait(time.Duration(e.patient.Load()))
		if err != nil {
			return err
		}
		e.collect()
		e.kept.ended(gone)
		e.kept.wake()
		if ctx.Err() != nil {
			return nil
		}
		if err := e.retune(); err != nil {
			return err
		}
	}
}

// stopSampling ends sampling by clocks and points, and takes out what they left.
func (e *Engine) stopSampling() {
	e.reading.Lock()
	if e.timers != nil {
		e.timers.Stop()
	}
	e.progs.points.stop()
	e.reading.Unlock()
	e.ended.Store(perfevent.Now())
	e.collectRest()
}

// retune changes the period of the clocks where it is time.
func (e *Engine) retune() error {
	if e.timers == nil {
		return nil
	}
	now := perfevent.Now()
	e.reading.Lock()
	defer e.reading.Unlock()
	if e.pace.due(now) {
		e.pace.account(now, e.lost())
		if slow, changed := e.pace.look(now, e.kept.waiting(), e.kept.limit); changed {
			e.timers.Slow(slow)
		}
	}
	return e.timers.Retune(now)
}

// collect takes everything that is waiting out of the rings.
func (e *Engine) collect() {
	e.reading.Lock()
	defer e.reading.Unlock()
	for e.collectOnce() && e.ring.waiting() > watermark(e.ring.size) {
	}
}

// collectOnce takes out what is waiting now, at most half a ring, and says whether there
// is more.
func (e *Engine) collectOnce() (more bool) {
	b := e.kept.open()
	defer e.kept.put(b)
	from, maps := len(b.items), len(b.maps)
	// What comes while the ring is read waits for the next time, so that nothing is
	// taken before its cause.
	until, last := perfevent.Now(), uint64(0)
	e.ring.begin()
	for r := e.ring.next(); r != nil; r = e.ring.next() {
		if len(r) < offPID {
			e.malformed.Add(1)
			continue
		}
		it := item{time: word(r[offTime:])}
		last = it.time
		e.expect(r)
		sample := r[0] == kindSample
		if it.data = e.kept.copy(b, r, sample); it.data == nil {
			e.dropped.Add(1)
			continue
		}
		if sample {
			it.weight = e.weigh(r)
		}
		b.items = append(b.items, it)
	}
	more = e.ring.more()
	e.ring.release()
	if last > 0 && more {
		until = min(until, last) // the rest of the ring comes first
	}
	if e.mmaps != nil {
		b.maps = e.mmaps.Read(b.maps, until, e.targets.Has)
		for i := maps; i < len(b.maps); i++ {
			b.items = append(b.items, item{time: b.maps[i].Time, note: i})
		}
	}
	slices.SortStableFunc(b.items[from:], func(a, b item) int { return cmp.Compare(a.time, b.time) })
	return more
}

// collectRest takes out what is left when nothing more is sampled. Notices go on coming.
func (e *Engine) collectRest() {
	const rounds = 64
	e.reading.Lock()
	defer e.reading.Unlock()
	for i := 0; i < rounds && e.collectOnce(); i++ {
	}
	e.pace.account(perfevent.Now(), e.lost())
}

// weigh is what a sample of a clock stands for; 0 for others. It is asked soon, because
// the clocks' periods change.
func (e *Engine) weigh(r []byte) uint64 {
	if len(r) < sampleSize || e.timers == nil || binary.LittleEndian.Uint32(r[offEvent:]) != eventTick {
		return 0
	}
	return e.timers.Weight(binary.LittleEndian.Uint32(r[offCPU:]), word(r[offTime:]))
}

// walkAll hands over all that was taken out of the rings, oldest first, and says
// whether there was anything.
func (e *Engine) walkAll(sink capture.Sink) (any bool) {
	for {
		group := e.kept.take()
		if len(group) == 0 {
			return any
		}
		any = true
		for _, b := range group {
			e.walkBatch(b, sink)
			e.kept.free(b, true)
		}
		e.tellPace(sink)
		sink.BatchEnd()
		e.patient.Store(int64(e.patience(sink)))
	}
}

func (e *Engine) walkBatch(b *batch, sink capture.Sink) {
	for i := range b.items {
		it := &b.items[i]
		if it.data != nil {
			e.deliver(it, sink)
			continue
		}
		n := &b.maps[it.note]
		if n.Kind == capture.Exec {
			if len(e.execed) >= maxExeced {
				clear(e.execed)
			}
			e.execed[n.PID] = true
			e.unknow(n.PID)
		}
		sink.Notice(*n)
	}
}

// drain hands over what is waiting, oldest first, and says whether there was anything.
func (e *Engine) drain(sink capture.Sink) bool {
	e.collect()
	return e.walkAll(sink)
}
