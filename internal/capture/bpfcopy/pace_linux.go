package bpfcopy

import (
	"time"

	"github.com/candid-profiler/candid/internal/capture"
)

// pace decides how many times slower than asked for is sampled, where samples come faster
// than they are walked for long: fewer samples that stand for more time are true, lost
// ones are not. It also knows when samples were lost.
type pace struct {
	slow    int    // 1: as asked
	changed uint64 // when that was last changed, ns
	waited  int    // bytes that waited when it was decided last
	faster  bool   // the last change was to sample faster
	trying  bool   // how fast it can be is not known yet
	calm    uint64 // since when little is waiting, ns; 0: it is not so
	wait    uint64 // how long it must be so before sampling gets faster, ns
	told    []capture.Slowed

	looked uint64 // when the backlog was last looked at, ns
	asked  uint64 // when lost was last asked for, ns
	lost   uint64 // samples that were lost by then
	loses  bool   // some were since the pace was last decided
	losses []capture.Loss
}

const (
	maxSlow  = 64
	slowEach = 500e6 // ns between two changes, if there is time
	lookEach = 100e6 // ns between two looks
	askEach  = 1e9   // ns after which lost is asked for, where nothing says that any were
	calmWait = 2e9
	tryWait  = 200e6
	// tryHz is how often each CPU is sampled at first at most, where everything on the
	// machine has to be looked at for the first time.
	tryHz   = 1000
	maxWait = 320e9
)

// begin says how many times slower to begin, of a whole machine that shall be sampled with
// this period.
func (p *pace) begin(now uint64, period time.Duration) int {
	p.slow, p.wait = 1, calmWait
	for p.slow < maxSlow && time.Duration(p.slow)*period < time.Second/(tryHz+tryHz/10) {
		p.slow *= 2
	}
	if p.trying = p.slow > 1; p.trying {
		p.changed = now
		p.told = append(p.told, capture.Slowed{Time: now, Times: p.slow, First: true})
	}
	return p.slow
}

// due reports whether it is time to look.
func (p *pace) due(now uint64) bool { return now-p.looked >= lookEach }

// asks reports whether it is time to ask for what was lost, which is a system call: at once where
// a ring was so full that some may have been.
func (p *pace) asks(now uint64, full bool) bool { return full || now-p.asked >= askEach }

// account takes how many samples have been lost by now in all.
func (p *pace) account(now, lost uint64) {
	if lost > p.lost {
		p.loses = true
		p.losses = capture.AddLoss(p.losses, capture.Loss{From: p.asked, To: now, Samples: lost - p.lost})
	}
	p.asked, p.lost = now, lost
}

// look says how many times slower to sample from now on, and whether that is new: waiting
// bytes of samples, of at most limit, have not been walked.
func (p *pace) look(now uint64, waiting, limit int) (slow int, changed bool) {
	p.looked = now
	if p.slow == 0 {
		p.slow, p.wait = 1, calmWait
	}
	if waiting > limit/16 {
		p.calm = 0
	} else if p.calm == 0 {
		p.calm = now
	}
	// A backlog that grows shows that the last change was not enough; one that gets
	// less is being walked. At ten thousand samples a second it is full in a moment.
	urgent := p.loses || waiting > limit/4 && waiting-p.waited > limit/8
	if p.trying && !urgent {
		return p.try(now)
	}
	if now-p.changed < slowEach && !(urgent && now-p.changed >= lookEach) {
		return p.slow, false
	}
	loses, grows := p.loses, waiting >= p.waited
	p.loses, p.waited = false, waiting
	switch {
	case (loses || waiting > limit/4 && grows) && p.slow < maxSlow:
		if p.faster {
			p.wait = min(2*p.wait, maxWait) // it was too soon
		}
		p.slow, p.calm, p.faster, p.trying = 2*p.slow, 0, false, false
	case p.slow > 1 && p.calm > 0 && now-p.calm > p.wait:
		p.slow, p.calm, p.faster = p.slow/2, 0, true
	default:
		return p.slow, false
	}
	p.changed, p.waited = now, waiting
	p.told = append(p.told, capture.Slowed{Time: now, Times: p.slow})
	return p.slow, true
}

// try samples faster, step by step, as long as little is waiting.
func (p *pace) try(now uint64) (slow int, changed bool) {
	if p.calm == 0 || now-max(p.calm, p.changed) < tryWait {
		return p.slow, false
	}
	if p.slow, p.changed = p.slow/2, now; p.slow == 1 {
		p.trying = false
		p.told = append(p.told, capture.Slowed{Time: now, Times: 1})
	}
	return p.slow, true
}

// tellPace tells the sink how fast is sampled, if that has changed.
func (e *Engine) tellPace(sink capture.Sink) {
	e.reading.Lock()
	told := e.pace.told
	e.pace.told = nil
	e.reading.Unlock()
	if p, ok := sink.(capture.Pacer); ok {
		for _, s := range told {
			p.Slowed(s)
		}
	}
}
