package bpfcopy

import (
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
)

// pace decides by which factor to slow down sampling if samples come faster than they are walked
// for long: fewer samples that stand for more time are correct, lost ones are not. It also knows
// when samples were lost.
type pace struct {
	slow    int    // 1: as requested
	least   int    // what slow is at least, on request; 0: 1
	why     string // of least
	changed uint64 // when slow was last changed, ns
	waited  int    // bytes that were waiting at the last decision
	faster  bool   // the last change was to sample faster
	trying  bool   // the highest possible rate is not known yet
	calm    uint64 // since when little has been waiting, ns; 0: much is
	wait    uint64 // how long little must be waiting before sampling gets faster, ns
	told    []capture.Slowed

	looked uint64 // when the backlog was last looked at, ns
	asked  uint64 // when lost was last read, ns
	lost   uint64 // samples that were lost by then
	loses  bool   // samples were lost since the last decision
	losses []capture.Loss
}

const (
	maxSlow  = 64
	slowEach = 500e6 // ns between two changes, if there is time
	lookEach = 100e6 // ns between two looks
	askEach  = 1e9   // ns after which lost is read if nothing suggests a loss
	calmWait = 2e9
	tryWait  = 200e6
	// tryHz is the highest initial sampling rate of each CPU if everything on the machine has to be
	// examined for the first time.
	tryHz   = 1000
	maxWait = 320e9
)

// begin returns the factor to start with if the whole machine is sampled with this period.
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

// asks reports whether it is time to read how many samples were lost, which is a system call: at
// once if a ring was so full that some may have been.
func (p *pace) asks(now uint64, full bool) bool { return full || now-p.asked >= askEach }

// account takes the total number of samples lost so far.
func (p *pace) account(now, lost uint64) {
	if lost > p.lost {
		p.loses = true
		p.losses = capture.AddLoss(p.losses, capture.Loss{From: p.asked, To: now, Samples: lost - p.lost})
	}
	p.asked, p.lost = now, lost
}

// look returns how many times slower to sample from now on, and whether that is new: waiting bytes
// of samples, out of at most limit, have not been walked.
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
	// A backlog that grows shows that the last change was not enough; one that shrinks is being
	// walked. At ten thousand samples a second it fills up in a moment.
	urgent := p.loses || waiting > limit/4 && waiting-p.waited > limit/8
	before := p.times()
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
	p.tell(now, before)
	return p.slow, true
}

// try raises the sampling rate step by step, as long as little is waiting.
func (p *pace) try(now uint64) (slow int, changed bool) {
	if p.calm == 0 || now-max(p.calm, p.changed) < tryWait {
		return p.slow, false
	}
	before := p.times()
	p.slow, p.changed = p.slow/2, now
	p.trying = p.slow > 1
	if p.slow <= max(p.least, 1) { // the steps on the way are not told
		p.tell(now, before)
	}
	return p.slow, true
}

// tell keeps for the sink that sampling has another rate than before. What was asked for by Throttle
// may be slower than what the engine would do by itself.
func (p *pace) tell(now uint64, before int) {
	times := p.times()
	if times == before {
		return
	}
	why := ""
	if times == p.least {
		why = p.why
	}
	p.told = append(p.told, capture.Slowed{Time: now, Times: times, Why: why})
}

// times returns how many times less often than requested to sample.
func (p *pace) times() int { return max(p.slow, p.least, 1) }

// Throttle implements capture.Throttler.
func (e *Engine) Throttle(times int, why string) {
	e.reading.Lock()
	defer e.reading.Unlock()
	before := e.pace.times()
	e.pace.least, e.pace.why = max(times, 1), why
	now := e.pace.times()
	if e.timers == nil || now == before {
		return
	}
	e.timers.Slow(now)
	e.pace.tell(perfevent.Now(), before)
}

// tellPace tells the sink how fast sampling is, if that has changed.
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
