// Package push sends profiles to servers that keep them for many machines: Grafana Pyroscope, Parca,
// OpenTelemetry's Collector. Samples are summed up by service and container, encoded, put into a buffer
// on disk, and sent from there until the server has them or they are too old. What may have arrived is
// never sent twice: Pyroscope would count it twice.
package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"
)

// Options are what a Pusher needs beside its configuration.
type Options struct {
	// Log gets a line when something goes wrong or is well again, not for each failure; nil: nobody.
	Log func(line string)
	// Labels are those of all profiles, such as "host.name" and "env".
	Labels map[string]string
	// Host identifies the machine for Config.Probability: the same one decides the same way each time.
	// "" stands for the machine's id, or its name.
	Host string

	dial dialer // for tests; nil: the network
}

// Stats are what became of profiles: one of each event and service for each Config.Every, or more if
// it is too large for one message. Maps are by reason.
type Stats struct {
	Type, URL string // as configured, without secrets
	// Sampled is false if this host is one of those that Config.Probability leaves out.
	Sampled   bool
	Sent      uint64
	SentBytes uint64            // of messages that were sent, as they were sent
	Dropped   map[string]uint64 // never sent: "http-400", "too-old", "buffer-full", …
	Retried   map[string]uint64 // attempts that failed and are repeated: "connection", "http-429", …
	Ambiguous map[string]uint64 // may have arrived, and are not sent again: "no-reply", "timeout", …
	Unsent    int               // in the buffer
	Bytes     int64             // of the buffer
	Oldest    time.Time         // when the oldest profile in the buffer begins; zero if there is none
	LastSent  time.Time         // zero: none was sent
	LastError string            // the latest reason not to send, "" if the latest attempt succeeded
}

// OldestUnsent returns how old the oldest profile in the buffer is; 0 if there is none.
func (s *Stats) OldestUnsent() time.Duration {
	if s.Oldest.IsZero() {
		return 0
	}
	return max(time.Since(s.Oldest), 0)
}

// Pusher sends profiles to one server. Its methods may be called by several goroutines.
type Pusher struct {
	config  Config
	client  *client
	sampled bool
	log     func(string)
	shown   string // the URL without secrets

	mu      sync.Mutex
	sums    sums
	buffer  *buffer
	stats   Stats
	sending int       // requests under way
	fails   int       // attempts in a row that the server did not take
	pause   time.Time // nothing is sent before
	closing bool
	logged  string // the latest error that was logged

	wake    chan struct{} // something changed
	stop    context.CancelFunc
	done    chan struct{} // run has returned
	flights sync.WaitGroup
	closed  error
	once    sync.Once
}

// workers is how many requests are sent at once.
const workers = 4

// New checks a configuration, opens the buffer and begins to send what is in it.
func New(c Config, o Options) (*Pusher, error) {
	c, err := c.complete()
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	u, _ := c.url()
	p := &Pusher{config: c, shown: u.Redacted(), log: o.Log, sampled: sampled(c.Probability, o.Host), wake: make(chan struct{}, 1), done: make(chan struct{})}
	if p.log == nil {
		p.log = func(string) {}
	}
	if p.client, err = newClient(&c, o.dial); err != nil {
		return nil, fmt.Errorf("push to %s: %w", p.shown, err)
	}
	p.sums.fixed = maps.Clone(o.Labels)
	p.stats = Stats{Type: c.Type, URL: p.shown, Sampled: p.sampled, Dropped: map[string]uint64{}, Retried: map[string]uint64{}, Ambiguous: map[string]uint64{}}
	warn := func(text string) { p.log(fmt.Sprintf("push to %s: %s", p.shown, text)) }
	lost := func(n int, reason string) { p.stats.Dropped[reason] += uint64(n) }
	b, interrupted, err := openBuffer(&c, lost, warn)
	if err != nil {
		return nil, fmt.Errorf("push to %s: %w", p.shown, err)
	}
	p.buffer = b
	if interrupted > 0 {
		p.stats.Ambiguous["interrupted"] = uint64(interrupted)
		warn(fmt.Sprintf("%d profiles were being sent when candid ended the last time: they may have arrived and are not sent again", interrupted))
	}
	if n := len(b.items); n > 0 {
		warn(fmt.Sprintf("%d profiles from before are in the buffer", n))
	}
	if u.Scheme == "http" && !loopback(u) && (c.TokenFile != "" || u.User != nil) {
		warn("the url begins with http://, so that the token is sent unencrypted")
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go p.run(ctx)
	return p, nil
}

// sampled reports whether a host is one of those that push.
func sampled(probability float64, host string) bool {
	if probability >= 1 {
		return true
	}
	if host == "" {
		if id, err := readSmall("/etc/machine-id"); err == nil {
			host = strings.TrimSpace(string(id))
		}
		if host == "" {
			host, _ = os.Hostname()
		}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(host))
	x := h.Sum64() // similar names have similar sums: mix
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return float64(x)/math.MaxUint64 < probability
}

// Add adds what was sampled. The error says what is wrong with the window: whether anything can be sent
// is in Stats. The window's profile can be changed as soon as Add returns.
func (p *Pusher) Add(w Window) error {
	from, to, err := w.span()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return errors.New("push: a window after Close")
	}
	if !p.sampled {
		return nil
	}
	p.sums.add(&w, from, to)
	if p.sums.full() {
		p.flush()
	}
	return nil
}

// flush moves what was summed up into the buffer. p.mu is locked.
func (p *Pusher) flush() {
	list, err := p.sums.messages(p.client.protocol, p.config.Probability)
	if err != nil {
		p.stats.Dropped["encoding"]++
		p.log(fmt.Sprintf("push to %s: %v", p.shown, err))
	}
	p.buffer.put(list)
	p.poke()
}

// poke wakes run.
func (p *Pusher) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run flushes regularly and sends what is in the buffer. The flushes of different hosts and agents are
// spread over the interval, however many are started at the same time.
func (p *Pusher) run(ctx context.Context) {
	defer close(p.done)
	next := time.Now().Add(time.Duration(rand.Int64N(int64(p.config.Every))))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p.mu.Lock()
		now := time.Now()
		if !now.Before(next) {
			p.flush()
			for !now.Before(next) {
				next = next.Add(p.config.Every)
			}
		}
		at := p.dispatch(ctx, now)
		p.mu.Unlock()
		if at.IsZero() || next.Before(at) {
			at = next
		}
		timer.Reset(time.Until(at))
		select {
		case <-ctx.Done():
			p.flights.Wait()
			return
		case <-p.wake:
		case <-timer.C:
		}
	}
}

// Stats returns what became of profiles so far.
func (p *Pusher) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Dropped, s.Retried, s.Ambiguous = maps.Clone(s.Dropped), maps.Clone(s.Retried), maps.Clone(s.Ambiguous)
	s.Unsent, s.Bytes, s.Oldest = len(p.buffer.items), p.buffer.bytes, p.buffer.oldest()
	return s
}

// Close sends everything, for as long as ctx permits and the server answers, and ends. What is left is
// in the buffer on disk, or lost if there is none: then, and if anything may have been lost, the error
// says so. Add must not be called afterwards.
func (p *Pusher) Close(ctx context.Context) error {
	p.once.Do(func() { p.closed = p.close(ctx) })
	return p.closed
}

func (p *Pusher) close(ctx context.Context) error {
	p.mu.Lock()
	p.closing = true
	p.flush()
	failures := p.failures()
	p.pause = time.Time{} // one more attempt, at once
	for _, it := range p.buffer.items {
		it.notBefore = time.Time{}
	}
	p.mu.Unlock()
	p.poke()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		p.mu.Lock()
		left := len(p.buffer.items)
		failed := p.failures() > failures && p.buffer.inMemory == 0
		p.mu.Unlock()
		if left == 0 || failed {
			break
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	p.stop()
	<-p.done
	p.client.transport.CloseIdleConnections()
	p.mu.Lock()
	defer p.mu.Unlock()
	left := len(p.buffer.items)
	memory := 0
	for _, it := range p.buffer.items {
		if it.seg == nil {
			memory++
		}
	}
	why := cmp.Or(p.stats.LastError, "there was no time")
	p.buffer.close()
	switch {
	case memory > 0:
		return fmt.Errorf("push to %s: %d profiles were not sent and are lost, because they were only in memory: %s", p.shown, memory, why)
	case left > 0:
		p.log(fmt.Sprintf("push to %s: %d profiles stay in the buffer until candid is started again: %s", p.shown, left, why))
	}
	return nil
}

// failures returns how many attempts failed so far.
func (p *Pusher) failures() (n uint64) {
	for _, c := range p.stats.Retried {
		n += c
	}
	for _, c := range p.stats.Ambiguous {
		n += c
	}
	return n
}
