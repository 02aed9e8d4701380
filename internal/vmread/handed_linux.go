package vmread

import "time"

// handed is a goroutine that makes the calls of callers that may be locked to their threads. Each call
// wakes it, and it wakes its caller.
type handed struct {
	begin chan uint64 // numbers of calls
	done  chan struct{}
	timer *time.Timer
}

// handOver lets the helper's other goroutine make the call with a number; ErrGivenUp if it does not
// return.
func (h *helper) handOver(number uint64) error {
	g := h.handed
	if g == nil {
		g = &handed{begin: make(chan uint64), done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
		g.timer.Stop()
		h.handed = g
		go h.serve(g)
	}
	g.begin <- number
	if g.wait(h, number) {
		return nil
	}
	h.switched.end()
	return ErrGivenUp
}

// serve makes calls until one of them is given up.
func (h *helper) serve(g *handed) {
	for number := range g.begin {
		if !h.read(number) {
			return
		}
		g.done <- struct{}{}
	}
}

// wait waits for the end of a call; false if it was given up.
func (g *handed) wait(h *helper, number uint64) bool {
	var l look
	g.timer.Reset(tick)
	for {
		select {
		case <-g.done:
			g.timer.Stop()
			return true
		case <-g.timer.C:
		}
		if l.tooLong(h, time.Since(began)) {
			if h.giveUp(number) {
				return false
			}
			<-g.done
			return true
		}
		g.timer.Reset(tick)
	}
}

// end ends the goroutine of a helper that is not used any more. g may be nil.
func (g *handed) end() {
	if g != nil {
		close(g.begin)
	}
}
