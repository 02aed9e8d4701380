package bpfcopy

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
)

// stuck is a sink that blocks in its first sample, as on a file that is slow to read.
type stuck struct {
	inside  chan struct{} // closed when it waits
	release chan struct{}
	last    uint64
	samples int
	back    int
	began   bool
}

func (s *stuck) Sample(snap *capture.Snapshot) {
	if !s.began {
		s.began = true
		close(s.inside)
		<-s.release
	}
	s.samples++
	if snap.Time < s.last {
		s.back++
	}
	s.last = snap.Time
}
func (s *stuck) Notice(capture.ProcessEvent) {}
func (s *stuck) BatchEnd()                   {}

// ended waits until an engine's Run has ended without an error.
func ended(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Run did not end within 30 s")
	}
}

// The ring is emptied even while the walker is blocked, and nothing that arrives meanwhile is lost.
func TestReadingGoesOnWhileWalkingWaits(t *testing.T) {
	prog := startProg(t, compile(t, spinSource))
	e := open(t, cpuOptions(1000, prog.Process.Pid), Exact)
	s := &stuck{inside: make(chan struct{}), release: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, s) }()
	tooLittle := fixture.Watch(t)
	patience := time.After(30 * time.Second)
	select {
	case <-s.inside:
	case <-patience:
		tooLittle("no sample came within 30 s")
		return
	}
	for e.kept.waiting() < 3*chunkSize {
		select {
		case <-patience:
			t.Fatalf("%d bytes of samples were taken out of the ring while the walker waited, after 30 s", e.kept.waiting())
		case <-time.After(5 * time.Millisecond):
		}
	}
	close(s.release)
	cancel()
	ended(t, done)
	st := e.Stats()
	if st.Lost > 0 || st.Samples != uint64(s.samples) || s.back > 0 {
		t.Errorf("%d samples of %d were handed over, %d of them not in the order of time; %d were lost", s.samples, st.Samples, s.back, st.Lost)
	}
	if left := e.kept.waiting(); left != 0 {
		t.Errorf("%d bytes are still kept", left)
	}
}

// The backlog keeps records whole, in order and bounded: samples that find no room are refused,
// notices are still accepted.
func TestBacklog(t *testing.T) {
	l := newBacklog(4 * chunkSize)
	defer l.close()
	record := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 100<<10) }
	kept := 0
	for i := range 100 {
		b := l.open()
		if data := l.copy(b, record(i), true); data != nil {
			b.items = append(b.items, item{time: uint64(i), data: data})
			kept++
		}
		if data := l.copy(b, record(i)[:72], false); data != nil {
			b.items = append(b.items, item{time: uint64(i), data: data})
		} else {
			t.Fatalf("notice %d found no room", i)
		}
		l.put(b)
	}
	if kept < 30 || kept > 40 {
		t.Errorf("%d samples of 100 KiB were kept in 4 MiB", kept)
	}
	if held := l.waiting(); held > 5*chunkSize {
		t.Errorf("%d bytes are held where %d are allowed for samples", held, 4*chunkSize)
	}
	samples, notices := 0, 0
	for group := l.take(); len(group) > 0; group = l.take() {
		for _, b := range group {
			for _, it := range b.items {
				want := record(int(it.time))
				if len(it.data) == 72 {
					notices, want = notices+1, want[:72]
				} else {
					samples++
				}
				if !bytes.Equal(it.data, want) {
					t.Fatalf("record %d is not what it was", it.time)
				}
			}
			l.free(b, true)
		}
	}
	if samples != kept || notices != 100 || l.waiting() != 0 {
		t.Errorf("%d of %d samples, %d of 100 notices came out, %d bytes are still held", samples, kept, notices, l.waiting())
	}
	big := l.open()
	if l.copy(big, make([]byte, 3*chunkSize), true) == nil {
		t.Error("a record larger than a chunk found no room")
	}
	l.free(big, false)
}

// The sink is told how fast sampling really is, whether that was asked for or the engine cannot do more.
func TestPaceOnRequest(t *testing.T) {
	const second, limit = uint64(1e9), 1000
	p := pace{least: 4, why: "a limit"}
	now := second
	for range 3 {
		now += second
		p.look(now, limit, limit)
	}
	if len(p.told) != 1 || p.told[0].Times != 8 || p.told[0].Why != "" {
		t.Errorf("slowed down to 2, 4 and 8 where 4 was asked for: %+v", p.told)
	}
	for range 200 {
		now += second
		p.look(now, 0, limit)
	}
	if len(p.told) != 2 || p.told[1].Times != 4 || p.told[1].Why != "a limit" {
		t.Errorf("as fast as asked for again: %+v", p.told)
	}
}

// Sampling slows down when much waits or samples were lost, and speeds up when neither has been so
// for long.
func TestPace(t *testing.T) {
	const second, limit = uint64(1e9), 1000
	var p pace
	now := second
	if slow, _ := p.look(now, 0, limit); slow != 1 {
		t.Fatalf("sampling begins %d times slower", slow)
	}
	if slow, changed := p.look(now, limit, limit); slow != 2 || !changed {
		t.Errorf("with a full backlog: %d times slower", slow)
	}
	if slow, changed := p.look(now+second/10, limit, limit); slow != 2 || changed {
		t.Errorf("a tenth of a second later: %d times slower", slow)
	}
	now += second
	if slow, changed := p.look(now, limit*3/4, limit); slow != 2 || changed {
		t.Errorf("with a backlog that gets less: %d times slower", slow)
	}
	now += second
	p.account(now, 7)
	if slow, _ := p.look(now, 0, limit); slow != 4 {
		t.Errorf("when 7 samples were lost: %d times slower", slow)
	}
	for range 200 {
		now += second
		p.account(now, 7)
		p.look(now, 0, limit)
	}
	if p.slow != 1 {
		t.Errorf("after 200 calm seconds it is still %d times slower", p.slow)
	}
	if len(p.losses) != 1 || p.losses[0].Samples != 7 {
		t.Errorf("the losses are %v", p.losses)
	}
	if n := len(p.told); n != 4 {
		t.Errorf("%d changes were told of, not 4: %v", n, p.told)
	}
}

// If samples come many times faster than they are walked, the rate falls before much is lost. It
// rises again soon if that was only the beginning, and more slowly the more often it rose too soon.
func TestPaceFallsAtOnce(t *testing.T) {
	const limit, ms = 48 << 20, uint64(1e6)
	var p pace
	now := 1000 * ms
	for waiting := 0; waiting < limit && p.slow < 8; now += 100 * ms {
		p.account(now, 0)
		if slow, _ := p.look(now, waiting, limit); slow > 0 {
			waiting += limit / 3 / slow
		}
	}
	if p.slow < 4 || now > 2000*ms {
		t.Errorf("with a backlog that would be full in 0.3 s it is sampled %d times slower after %d ms", p.slow, now/ms-1000)
	}
	lost := uint64(0)
	for range 3 {
		lost, now = lost+5, now+100*ms
		p.account(now, lost)
		p.look(now, limit, limit)
	}
	if p.slow < 32 {
		t.Errorf("with losses in each of three looks it is sampled %d times slower", p.slow)
	}
	calm := func() uint64 {
		began := now
		for before := p.slow; p.slow >= before; now += 100 * ms {
			p.look(now, 0, limit)
		}
		return now - began
	}
	first := calm()
	if first > 3000*ms {
		t.Errorf("after %d ms it is sampled faster again", first/ms)
	}
	for range 3 {
		now += 600 * ms
		p.look(now, limit, limit)
		if again := calm(); again < first+1000*ms {
			t.Errorf("where that was too soon it is sampled faster again after %d ms, before after %d ms", again/ms, first/ms)
		} else {
			first = again
		}
	}
}

// A whole machine is sampled at a high rate only once it has shown that so much can be walked.
func TestPaceBeginsSlowly(t *testing.T) {
	const limit, ms = 48 << 20, uint64(1e6)
	for period, want := range map[time.Duration]int{10 * time.Millisecond: 1, time.Second / 999: 1, 200 * time.Microsecond: 8, 100 * time.Microsecond: 16} {
		var p pace
		now := 1000 * ms
		if p.begin(now, period); p.slow != want {
			t.Errorf("every %v: begun %d times slower, not %d", period, p.slow, want)
		}
		for end := now + 2000*ms; now < end; now += 100 * ms {
			p.look(now, 0, limit)
		}
		if p.slow != 1 || want > 1 && len(p.told) != 2 {
			t.Errorf("every %v: after two calm seconds %d times slower; told: %v", period, p.slow, p.told)
		}
	}
	// A sample that waits ends the trying.
	var p pace
	now := 1000 * ms
	p.begin(now, 100*time.Microsecond)
	for waiting := limit / 3; now < 3000*ms; now += 100 * ms {
		p.look(now, waiting, limit)
		waiting++
	}
	if p.slow <= 16 {
		t.Errorf("with a backlog that does not get less it is sampled %d times slower", p.slow)
	}
}
