package bpfcopy

import (
	"context"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
)

// If walking keeps up with sampling, the walker reads the rings itself and walks the stacks in
// place: that saves a copy of each stack and a wakeup of another thread. If walking takes long all
// the same, a reader relieves the walker, and stays for a while.
const (
	// reliefAfter is how long records in the ring may be walked in place. A ring has room for
	// several times that.
	reliefAfter = 15 * time.Millisecond
	// swift is how long walking a batch takes at most if the walker keeps up.
	swift = 5 * time.Millisecond
	// swiftFor is how long the walker must have kept up.
	swiftFor = time.Second
	// unhurried is the shortest patience with which the walker reads the rings itself: a sink that
	// wants batches sooner gets a reader.
	unhurried = 50 * time.Millisecond
	// soonFull is the time in which half of the ring would be filled if samples are so large or so
	// many that the ring must not wait for the walker, not even until it is relieved.
	soonFull = 100 * time.Millisecond
	// roomFor is the time that half of the ring must have room for if the walker reads the rings itself however long
	// it takes and however soon batches are wanted, and calmRelief is when it is relieved then. At a low rate on a
	// machine where processes begin all the time, a second thread costs more than all of the walking.
	roomFor    = 2 * time.Second
	calmRelief = 100 * time.Millisecond
)

// flow measures how fast stacks arrive.
type flow struct {
	since time.Time
	bytes uint64 // total until since
	fast  bool
	calm  bool // it is known that there is room for a while
}

// look reports whether room bytes would be filled soon; bytes is the total so far.
func (f *flow) look(now time.Time, bytes, room uint64) (fast bool) {
	if d := now.Sub(f.since); d >= soonFull {
		if !f.since.IsZero() {
			filledIn := func(t time.Duration) bool { return float64(bytes-f.bytes)*t.Seconds() > float64(room)*d.Seconds() }
			f.fast, f.calm = filledIn(soonFull), !filledIn(roomFor)
		}
		f.since, f.bytes = now, bytes
	}
	return f.fast
}

// fills reports whether the ring would soon be full if nobody read it.
func (e *Engine) fills(now time.Time) bool { return e.flow.look(now, e.bytes.Load(), e.ring.size/2) }

// inPlace is the batch that is walked in place in the ring.
type inPlace struct {
	mu    sync.Mutex
	batch batch
	next  int    // index of the first of the batch's items that is not taken yet
	from  uint64 // the position up to which the ring was read before
	busy  bool   // something is being walked while nobody reads the ring
	holds bool   // and it lies in the ring
	guard *time.Timer
}

// turn waits until there is something to walk and walks it. It returns the processes that have
// ended, whether there was anything, and why nothing can be read any more.
func (e *Engine) turn(ctx context.Context, sink capture.Sink) (gone []int, any bool, err error) {
	r := e.reader.Load()
	if r == nil {
		return e.turnHere(ctx, sink)
	}
	select {
	case <-e.kept.ready:
	case <-r.done:
	}
	gone = e.kept.takeEnded()
	e.walked = time.Now()
	any = e.walkAll(sink)
	select {
	case <-r.done:
		if r.err == nil && ctx.Err() == nil {
			e.reader.Store(nil) // what it has left in the backlog is walked first
		}
		return append(gone, e.kept.takeEnded()...), any, r.err
	default:
	}
	now := time.Now()
	if e.fills(now) || !e.flow.calm && (now.Sub(e.walked) > swift || e.patience(sink) < unhurried) {
		e.strain = now
	}
	if now.Sub(e.strain) > swiftFor {
		r.leave.Store(true)
	}
	return gone, any, nil
}

// turnHere is turn without a reader.
func (e *Engine) turnHere(ctx context.Context, sink capture.Sink) (gone []int, any bool, err error) {
	for {
		patience := time.Duration(e.patient.Load())
		if gone, err = e.waiter.Wait(patience - time.Since(e.walked)); err != nil {
			return gone, false, err
		}
		if err = e.retune(); err != nil {
			return gone, false, err
		}
		if ctx.Err() != nil {
			e.stopSampling()
			break
		}
		if len(gone) > 0 || time.Since(e.walked) >= patience || e.ring.waiting() >= watermark(e.ring.size) {
			break
		}
		// The kernel also wakes the walker for events that are not worth a batch.
		if e.collect() || e.kept.waiting() > wakeBytes {
			break
		}
	}
	e.walked = time.Now()
	any = e.walkHere(sink)
	now := time.Now()
	hurry := e.fills(now) || !e.flow.calm && e.patience(sink) < unhurried
	if hurry || !e.flow.calm && now.Sub(e.walked) > swift {
		e.strain = now
	}
	if hurry && e.reader.Load() == nil {
		e.read(ctx)
	}
	return gone, any, nil
}

// walkHere walks what is in the backlog, then what is in the rings, and reports whether there was
// anything. If it takes long, a reader takes over the rings, and the rest of their records is left
// to the next turn.
func (e *Engine) walkHere(sink capture.Sink) (any bool) {
	h := &e.here
	h.mu.Lock()
	h.busy, h.holds = true, false
	h.mu.Unlock()
	relief := reliefAfter
	if e.flow.calm {
		relief = calmRelief
	}
	h.guard.Reset(relief)
	for e.reader.Load() == nil {
		group := e.kept.take()
		if len(group) == 0 {
			break
		}
		any = true
		for _, b := range group {
			e.walkBatch(b, sink)
			e.kept.free(b, true)
		}
	}
	if b := e.readHere(); b != nil {
		h.guard.Reset(relief)
		for it := h.take(); it != nil; it = h.take() {
			any = true
			e.walkItem(b, it, sink)
		}
		e.reading.Lock()
		e.ring.letGo()
		e.ring.release()
		e.reading.Unlock()
	}
	h.guard.Stop()
	if any {
		e.tellPace(sink)
		e.batchEnd(sink)
		e.bePatient(sink)
	}
	return any
}

// readHere returns what is in the rings, to be walked in place; nil if a reader has them.
func (e *Engine) readHere() *batch {
	h := &e.here
	h.mu.Lock() // never while holding reading: relieve locks reading while it holds this
	defer h.mu.Unlock()
	if e.reader.Load() != nil {
		h.busy = false
		return nil
	}
	e.reading.Lock()
	defer e.reading.Unlock()
	b := &h.batch
	b.items, b.maps = b.items[:0], b.maps[:0]
	h.from, h.next = e.ring.pos, 0
	e.gather(b, func(record []byte, _ bool) []byte { return record })
	h.busy, h.holds = true, true
	return b
}

// take returns the next item, nil when there is none.
func (h *inPlace) take() *item {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next == len(h.batch.items) {
		h.busy = false
		return nil
	}
	h.next++
	return &h.batch.items[h.next-1]
}

// relieve starts a reader if the walker is not done, and copies what is not walked yet out of the
// ring.
func (e *Engine) relieve(ctx context.Context) {
	h := &e.here
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.busy || e.reader.Load() != nil {
		return
	}
	if h.holds {
		e.moveOut()
	}
	e.read(ctx)
}

// moveOut copies what is in the ring and not walked yet into the backlog. The caller has locked
// e.here.
func (e *Engine) moveOut() {
	h := &e.here
	e.reading.Lock()
	defer e.reading.Unlock()
	b := e.kept.open()
	for i := h.next; i < len(h.batch.items); i++ {
		it := h.batch.items[i]
		if it.data == nil {
			b.maps = append(b.maps, h.batch.maps[it.note])
			it.note = len(b.maps) - 1
		} else if it.data = e.kept.copy(b, it.data, it.data[0] == kindSample); it.data == nil {
			e.drop()
			continue
		}
		b.items = append(b.items, it)
	}
	e.kept.put(b)
	var now []byte // what is being walked is still there
	if h.next > 0 {
		now = h.batch.items[h.next-1].data
	}
	h.batch.items = h.batch.items[:h.next]
	e.ring.hold(h.from, now)
	e.ring.release()
}
