package bpfcopy

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
	"github.com/candid-profiler/candid/internal/fixture"
)

// hasty is a sink that wants each sample within a millisecond.
type hasty struct {
	asked int             // how often it was asked when
	late  []time.Duration // how long after it was taken each sample came
}

func (h *hasty) Sample(snap *capture.Snapshot) {
	h.late = append(h.late, time.Duration(perfevent.Now()-min(snap.Time, perfevent.Now())))
}
func (h *hasty) Notice(capture.ProcessEvent) {}
func (h *hasty) BatchEnd()                   {}
func (h *hasty) NextBatch() time.Duration {
	h.asked++
	return time.Millisecond
}

// At a low rate samples come as soon as they are taken, to a sink that wants them soon, without anybody looking for
// them again and again.
func TestSampleWakes(t *testing.T) {
	prog := startProg(t, compile(t, spinSource))
	e := open(t, cpuOptions(19, prog.Process.Pid), Exact)
	if e.between <= 10*time.Millisecond {
		t.Skipf("with so many CPUs a sample comes each %v", e.between)
	}
	h := &hasty{}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	tooLittle := fixture.Watch(t)
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, h) }()
	ended(t, done)
	if len(h.late) < 10 {
		tooLittle("%d samples in 4 s", len(h.late))
		return
	}
	slices.Sort(h.late)
	if m := h.late[len(h.late)/2]; m > 30*time.Millisecond {
		tooLittle("half of %d samples came later than %v after they were taken", len(h.late), m)
	}
	if most := 10*len(h.late) + 400; h.asked > most {
		t.Errorf("for %d samples the sink was asked %d times how soon it wants the next", len(h.late), h.asked)
	}
}

// A ring has room for a while if what arrives would fill it late, and is full soon if that comes fast.
func TestFlow(t *testing.T) {
	const room = 1 << 20
	now := time.Unix(1000, 0)
	var f flow
	if f.look(now, 0, room) || f.calm {
		t.Error("something is known before anything was measured")
	}
	total := uint64(0)
	for _, c := range []struct {
		bytes      uint64 // in half a second
		fast, calm bool
	}{{0, false, true}, {room / 8, false, true}, {room / 2, false, false}, {4 * room, false, false}, {6 * room, true, false}, {room / 8, false, true}} {
		now, total = now.Add(500*time.Millisecond), total+c.bytes
		if fast := f.look(now, total, room); fast != c.fast || f.calm != c.calm {
			t.Errorf("%d bytes in half a second: fast %v, calm %v", c.bytes, fast, f.calm)
		}
		if f.look(now.Add(time.Millisecond), total+room, room) != c.fast || f.calm != c.calm {
			t.Error("a millisecond changes it")
		}
	}
}
