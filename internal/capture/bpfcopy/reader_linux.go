package bpfcopy

import (
	"cmp"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
)

// reader empties the rings while the walker works. It has a thread of its own and waits for nothing
// but the rings: the goroutine that walks and symbolizes the samples may have to read files, or
// wait for a target, for longer than a ring has room. On a crowded machine the kernel prefers a
// thread that mostly sleeps to those that have just run.
type reader struct {
	leave atomic.Bool   // the walker is fast enough to read the rings itself
	done  chan struct{} // closed when the reader no longer reads the rings
	err   error         // why, unless it is because of leave or the context; set once done is closed
}

// read starts a reader, which reads until ctx ends.
func (e *Engine) read(ctx context.Context) {
	r := &reader{done: make(chan struct{})}
	e.reader.Store(r)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer e.kept.wake()
		defer close(r.done)
		if r.err = e.readOn(ctx, r); !r.leave.Load() {
			e.stopSampling() // walking the rest may take a while
		}
	}()
}

// readOn empties the rings until ctx ends or the reader is asked to leave, and returns what went
// wrong.
func (e *Engine) readOn(ctx context.Context, r *reader) error {
	var last time.Time // when the walker was woken
	wait := time.Duration(e.patient.Load())
	for {
		gone, err := e.waiter.Wait(wait)
		if err != nil {
			return err
		}
		now := e.collect()
		e.kept.ended(gone)
		// The kernel also wakes the reader for events that are not worth a batch, and a batch costs
		// the more per record the fewer it holds.
		since := time.Since(last)
		patience := time.Duration(e.patient.Load())
		if wait = patience - since; now || wait <= 0 || len(gone) > 0 || e.kept.waiting() > wakeBytes {
			e.kept.wake()
			last, wait = last.Add(since), patience
		}
		if now {
			wait = min(wait, promptly)
		}
		if err := e.retune(); err != nil {
			return err
		}
		if ctx.Err() != nil || r.leave.Load() {
			return nil
		}
	}
}

const (
	// wakeBytes is how many bytes may wait to be walked before the walker is woken early.
	wakeBytes = 2 * chunkSize
	// promptly is how soon the rings are read again after something that the Sink wants to look at:
	// the Sink only says after this batch how soon it wants the next one.
	promptly = 10 * time.Millisecond
)

// stopSampling ends sampling by clocks and points, and takes out what they have left, the first
// time that it is called.
func (e *Engine) stopSampling() {
	e.reading.Lock()
	stopped := e.stopped
	e.stopped = true
	if !stopped {
		if e.timers != nil {
			e.timers.Stop()
		}
		e.progs.points.stop()
		e.ended.Store(perfevent.Now())
	}
	e.reading.Unlock()
	if !stopped {
		e.collectRest()
	}
}

// retune changes the period of the clocks when it is time.
func (e *Engine) retune() error {
	if e.timers == nil {
		return nil
	}
	now := perfevent.Now()
	e.reading.Lock()
	defer e.reading.Unlock()
	if e.pace.due(now) {
		if e.pace.asks(now, e.ring.filled) {
			e.pace.account(now, e.lost())
			e.ring.filled = false
		}
		if _, changed := e.pace.look(now, e.kept.waiting(), e.kept.limit); changed {
			e.timers.Slow(e.pace.times())
		}
	}
	return e.timers.Retune(now)
}

// collect takes everything that is waiting out of the rings, and reports whether something
// in it should be looked at now.
func (e *Engine) collect() (now bool) {
	e.reading.Lock()
	defer e.reading.Unlock()
	e.prompted = false
	for e.collectOnce() && e.ring.waiting() > watermark(e.ring.size) {
	}
	return e.prompted
}

// collectOnce takes out what is waiting now, at most half a ring, and reports whether there
// is more.
func (e *Engine) collectOnce() (more bool) {
	b := e.kept.open()
	more = e.gather(b, func(record []byte, sample bool) []byte { return e.kept.copy(b, record, sample) })
	e.ring.release()
	e.kept.put(b)
	return more
}

// gather adds what is waiting in the rings now, at most half a ring, to a batch, and reports
// whether there is more. It adds what keep returns for a record; nil means that there is no room.
func (e *Engine) gather(b *batch, keep func(record []byte, sample bool) []byte) (more bool) {
	from, maps := len(b.items), len(b.maps)
	// Records that arrive while the ring is read wait for the next pass, so that no effect is
	// handled before its cause.
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
		if it.data = keep(r, sample); it.data == nil {
			e.drop()
			continue
		}
		if sample {
			it.weight = e.weigh(r)
		}
		b.items = append(b.items, it)
	}
	if more = e.ring.more(); last > 0 && more {
		until = min(until, last) // the rest of the ring comes first
	}
	if e.mmaps != nil {
		b.maps = e.mmaps.Read(b.maps, until, e.targets.Has)
		for i := maps; i < len(b.maps); i++ {
			b.items = append(b.items, item{time: b.maps[i].Time, note: i})
		}
	}
	slices.SortStableFunc(b.items[from:], func(a, b item) int { return cmp.Compare(a.time, b.time) })
	e.prompt(b, b.items[from:])
	return more
}

// drop counts a record for which there was no room in the backlog.
func (e *Engine) drop() {
	e.dropped.Add(1)
	e.ring.filled = true
}

// prompt shows what happened to the Sink, which may want to look at it now. A Sink that is not a
// Prompter wants to look at everything.
func (e *Engine) prompt(b *batch, items []item) {
	if e.prompter == nil {
		e.prompted = true
		return
	}
	for i := range items {
		it := &items[i]
		switch {
		case it.data == nil:
			e.prompted = e.prompter.Prompt(&b.maps[it.note]) || e.prompted
		case it.data[0] == kindSample:
			e.prompted = e.prompted || !e.sampled || e.alarmed.Load()
			e.sampled = true
		case it.data[0] == kindNotice:
			var n capture.ProcessEvent
			if last, err := decodeNotice(it.data, &n); err == nil && n.Kind != capture.Comm && (n.Kind != capture.Exec || e.mmaps == nil) {
				n.Last = last
				e.prompted = e.prompter.Prompt(&n) || e.prompted
			}
		}
	}
}

// collectRest takes out what is left when sampling has ended. Notices still arrive.
func (e *Engine) collectRest() {
	const rounds = 64
	e.reading.Lock()
	defer e.reading.Unlock()
	for i := 0; i < rounds && e.collectOnce(); i++ {
	}
	e.pace.account(perfevent.Now(), e.lost())
}

// weigh returns what a sample of a clock stands for; 0 for other samples. It is called soon,
// because the clocks' periods change.
func (e *Engine) weigh(r []byte) uint64 {
	if len(r) < sampleSize || e.timers == nil || binary.LittleEndian.Uint32(r[offEvent:]) != eventTick {
		return 0
	}
	return e.timers.Weight(binary.LittleEndian.Uint32(r[offCPU:]), word(r[offTime:]))
}

// walkAll hands over everything that was taken out of the rings, oldest first, and reports whether
// there was anything.
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
		e.batchEnd(sink)
		e.bePatient(sink)
	}
}

func (e *Engine) walkBatch(b *batch, sink capture.Sink) {
	for i := range b.items {
		e.walkItem(b, &b.items[i], sink)
	}
}

func (e *Engine) walkItem(b *batch, it *item, sink capture.Sink) {
	if it.data != nil {
		e.deliver(it, sink)
		return
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

// drain hands over what is waiting, oldest first, and reports whether there was anything.
func (e *Engine) drain(sink capture.Sink) bool {
	e.collect()
	return e.walkAll(sink)
}
