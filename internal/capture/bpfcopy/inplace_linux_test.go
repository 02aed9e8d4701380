package bpfcopy

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
)

// dawdler is a sink that is fast, but blocks in each sample for which there is a token.
type dawdler struct {
	token   chan chan struct{} // each is closed when the sink may go on
	inside  chan struct{}
	last    uint64
	samples int
	back    int
	changed int // stacks that had changed after the sink had blocked
}

func (d *dawdler) Sample(snap *capture.Snapshot) {
	d.samples++
	if snap.Time < d.last {
		d.back++
	}
	d.last = snap.Time
	select {
	case release := <-d.token:
		before := bytes.Clone(snap.Stack)
		d.inside <- struct{}{}
		<-release
		if !bytes.Equal(before, snap.Stack) {
			d.changed++
		}
	default:
	}
}
func (d *dawdler) Notice(capture.ProcessEvent) {}
func (d *dawdler) BatchEnd()                   {}

// A walker that keeps up reads the rings itself. One that is held up is relieved: what arrives
// meanwhile is taken out and not lost, the stack that it is walking stays unchanged, and time order
// is kept. This works as often as it happens, and also if the walker is held up in records that
// were taken out of the ring early.
func TestWalkerIsRelieved(t *testing.T) {
	t.Run("ring", func(t *testing.T) { relieved(t, false) })
	t.Run("backlog", func(t *testing.T) { relieved(t, true) })
}

// takeOut takes what is waiting out of the rings, unless the walker is reading them.
func takeOut(e *Engine) {
	e.here.mu.Lock()
	defer e.here.mu.Unlock()
	if !e.here.busy && e.reader.Load() == nil {
		e.collect()
	}
}

func relieved(t *testing.T, early bool) {
	prog := startProg(t, compile(t, spinSource))
	e := open(t, cpuOptions(1000, prog.Process.Pid), Exact)
	d := &dawdler{token: make(chan chan struct{}), inside: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, d) }()
	tooLittle := fixture.Watch(t)
	patience := time.After(60 * time.Second)
	for range 3 {
		for e.reader.Load() != nil {
			select {
			case <-patience:
				tooLittle("the walker was not given the rings within a minute")
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
		release := make(chan struct{})
		for given := false; !given; {
			if early {
				takeOut(e)
			}
			select {
			case d.token <- release:
				given = true
			case <-patience:
				tooLittle("no sample came within a minute")
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
		<-d.inside
		for e.kept.waiting() < 2*chunkSize || e.reader.Load() == nil {
			select {
			case <-patience:
				t.Fatalf("%d bytes of samples were taken out of the ring while the walker waited", e.kept.waiting())
			case <-time.After(5 * time.Millisecond):
			}
		}
		close(release)
	}
	cancel()
	ended(t, done)
	st := e.Stats()
	if st.Lost > 0 || st.Samples != uint64(d.samples) || d.back > 0 || d.changed > 0 {
		t.Errorf("%d samples of %d were handed over, %d of them not in the order of time, %d changed meanwhile; %d were lost", d.samples, st.Samples, d.back, d.changed, st.Lost)
	}
	if left := e.kept.waiting(); left != 0 {
		t.Errorf("%d bytes are still kept", left)
	}
}

// A record that a pass has returned stays unchanged until it is released, even one that lay across
// the end of the ring.
func TestRingHolds(t *testing.T) {
	const size = 1 << 12
	r := &ring{consumer: make([]byte, 8), producer: make([]byte, 8), data: make([]byte, size), size: size}
	var written uint64
	write := func(fill byte, n int) {
		off := written & (size - 1)
		r.data[off], r.data[off+1] = byte(n), byte(n>>8)
		for i := range (n + 7) &^ 7 {
			r.data[(written+ringHeader+uint64(i))&(size-1)] = fill
		}
		clear(r.data[off+2 : off+ringHeader])
		written += ringHeader + uint64((n+7)&^7)
		for i := range 8 {
			r.producer[i] = byte(written >> (8 * i))
		}
	}
	room := func() uint64 {
		var n uint64
		for i := range 8 {
			n |= uint64(r.consumer[i]) << (8 * i)
		}
		return size - (written - n)
	}
	for i := range 200 {
		// There are three records; the second is in use while others arrive behind it.
		from := r.pos
		for k := range 3 {
			write(byte(3*i+k), 200+8*(i%7))
		}
		r.begin()
		r.next()
		held := r.next()
		r.next()
		r.hold(from, held)
		r.release()
		want := bytes.Clone(held)
		n := 0
		for ; room() > 800; n++ {
			write(0xff, 400)
			r.begin()
			for r.next() != nil {
			}
			r.release()
		}
		if n > 10 {
			t.Fatalf("round %d: %d records were written into a ring that is held", i, n)
		}
		if !bytes.Equal(held, want) {
			t.Fatalf("round %d: what was held is not what it was", i)
		}
		r.letGo()
		r.release()
		if room() != size {
			t.Fatalf("round %d: %d bytes are not free again", i, size-room())
		}
	}
}
