package push

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// eachWorker is how many profiles wait before one more request is sent at once: a small server that
// serves one connection after another keeps the requests on a second one waiting until they are
// given up.
const eachWorker = 100

// dispatch begins to send what can be sent, and returns when more can be; zero: when something changes.
// p.mu is locked.
func (p *Pusher) dispatch(ctx context.Context, now time.Time) time.Time {
	p.buffer.expire(now)
	if p.pause.After(now) {
		return p.pause
	}
	most := min(workers, 1+len(p.buffer.items)/eachWorker)
	if p.fails > 0 {
		most = 1 // one attempt shows whether the server is well again
	}
	for p.sending < most && ctx.Err() == nil {
		it, wait := p.buffer.ready(now)
		if it == nil {
			return wait
		}
		body, ok := p.buffer.body(it)
		if !ok {
			p.stats.Dropped["damaged-buffer"]++
			p.buffer.settle(it)
			continue
		}
		it.busy = true
		p.sending++
		p.flights.Add(1)
		go p.deliver(ctx, it, body)
	}
	return time.Time{}
}

// tries is how often a message is sent to a server that fails.
const tries = 3

// deliver sends a message and notes what became of it.
func (p *Pusher) deliver(ctx context.Context, it *item, body []byte) {
	defer p.flights.Done()
	marked := false
	o := p.client.send(ctx, body, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !marked {
			marked = true
			p.buffer.mark(it, recordSending)
		}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.poke()
	p.sending--
	it.busy = false
	it.tries++
	if o.verdict == retryFew {
		if o.verdict = retry; it.tries >= tries {
			o.verdict = dropped
		}
		it.notBefore = time.Now().Add(backoff(it.tries))
	} else if o.verdict == retry {
		it.tries-- // these are not counted
		p.fails++
		p.pause = time.Now().Add(max(backoff(p.fails), o.after))
	}
	switch o.verdict {
	case sent:
		p.stats.Sent++
		p.stats.SentBytes += uint64(len(body))
		p.stats.LastSent = time.Now()
		if o.reject > 0 {
			p.stats.Dropped[o.reason] += o.reject
		}
		p.buffer.settle(it)
	case retry:
		p.stats.Retried[o.reason]++
		if marked {
			p.buffer.mark(it, recordUnsent)
		}
	case dropped:
		p.stats.Dropped[o.reason]++
		p.buffer.settle(it)
	case ambiguous:
		p.stats.Ambiguous[o.reason]++
		p.buffer.settle(it)
		if o.reason != "interrupted" { // the server may be overloaded
			p.fails++
			p.pause = time.Now().Add(backoff(p.fails))
		}
	}
	if o.verdict == sent || o.verdict == dropped {
		p.fails, p.pause = 0, time.Time{}
	}
	p.report(&o)
}

// report logs an error that is not the one that was logged last, and that all is well again.
func (p *Pusher) report(o *outcome) {
	p.stats.LastError = ""
	if o.err != nil {
		p.stats.LastError = oneLine(o.err.Error())
	}
	switch {
	case o.err == nil && p.logged != "":
		p.logged = ""
		p.log(fmt.Sprintf("push to %s: the server accepts profiles again; %d are in the buffer", p.shown, len(p.buffer.items)))
	case o.err != nil && p.logged != o.reason:
		p.logged = o.reason
		what := map[verdict]string{retry: "it is sent again later", dropped: "it is dropped", ambiguous: "it may have arrived and is not sent again", sent: "the rest was accepted"}[o.verdict]
		p.log(fmt.Sprintf("push to %s: %s (%s)", p.shown, p.stats.LastError, what))
	}
}

// backoff returns how long to wait after so many failures in a row: 1 s and twice as long each time, up
// to a minute, give or take a quarter, so that hosts do not come back all at once.
func backoff(fails int) time.Duration {
	d := min(time.Second<<min(fails-1, 6), time.Minute)
	return d*3/4 + time.Duration(rand.Int64N(int64(d)/2))
}
