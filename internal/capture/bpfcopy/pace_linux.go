package bpfcopy

import "github.com/candid-profiler/candid/internal/capture"

// pace decides how many times slower than asked for is sampled, where samples come faster
// than they are walked for long: fewer samples that stand for more time are true, lost
// ones are not. It also knows when samples were lost.
type pace struct {
	slow    int    // 1: as asked
	changed uint64 // when that was last changed, ns
	waited  int    // bytes that waited when it was decided last
	faster  bool   // the last change was to sample faster
	calm    uint64 // since when little is waiting, ns; 0: it is not so
	wait    uint64 // how long it must be so before sampling gets faster, ns
	told    []capture.Slowed

	looked uint64 // when lost was last asked for, ns
	lost   uint64 // samples that were lost by then
	loses  bool   // some were since the pace was last decided
	losses []capture.Loss
}

const (
	maxSlow  = 64
	slowEach = 500e6 // ns between two changes, if there is time
	lookEach = 100e6 // ns between two looks
	calmWait = 2e9
	maxWait  = 320e9
)

// due says whether it is time to look.
func (p *pace) due(now uint64) bool { return now-p.looked >= lookEach }

// account takes how many samples have been lost by now in all.
func (p *pace) account(now, lost uint64) {
	if lost > p.lost {
		p.loses = true
		p.losses = capture.AddLoss(p.losses, capture.Loss{From: p.looked, To: now, Samples: lost - p.lost})
	}
	p.looked, p.lost = now, lost
}

// look says how many times slower to sample from now on, and whether that is new: waiting
// bytes of samples, of at most limit, have not been walked.
func (p *pace) look(now uint64, waiting, limit int) (slow int, changed bool) {
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
		p.slow, p.calm, p.faster = 2*p.slow, 0, false
	case p.slow > 1 && p.calm > 0 && now-p.calm > p.wait:
		p.slow, p.calm, p.faster = p.slow/2, 0, true
	default:
		return p.slow, false
	}
	p.changed, p.waited = now, waiting
	p.told = append(p.told, capture.Slowed{Time: now, Times: p.slow})
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
