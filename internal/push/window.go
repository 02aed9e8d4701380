package push

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/format/pprof"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Window is what was sampled of one service, or of several, in a span of time.
type Window struct {
	// Service is the name of the service, and Labels what distinguishes a part of it, such as
	// "container.id". Names are best OpenTelemetry's; Pyroscope and Parca get them with underscores
	// instead of dots.
	Service string
	Labels  map[string]string
	// Of gives the service and the labels of a thread, and whether it is pushed at all, if the
	// profile is of several services; nil: all are Service and Labels. It is called once for each
	// thread that has samples. Labels must not change afterwards.
	Of func(t *profile.Thread) (service string, labels map[string]string, ok bool)
	// From and To are the span of time; if they are zero, it is that of the profile's Meta.
	From, To time.Time
	// Profile has the samples, one by one or summed up. It is only read, and not kept.
	Profile *profile.Profile
}

// span returns the span of time of a window.
func (w *Window) span() (from, to time.Time, err error) {
	if w.Profile == nil {
		return from, to, errors.New("push: a window without a profile")
	}
	from, to = w.From, w.To
	if from.IsZero() && to.IsZero() {
		from = w.Profile.Meta.Start
		to = from.Add(w.Profile.Meta.Duration)
	}
	switch {
	case from.IsZero() || from.UnixNano() <= 0:
		return from, to, errors.New("push: a window without the time when it began")
	case !to.After(from):
		return from, to, fmt.Errorf("push: a window that ends %v after it begins", to.Sub(from))
	case w.Of == nil && w.Service == "":
		return from, to, errors.New("push: a window without the name of its service")
	}
	return from, to, nil
}

// Limits of what is sent, which are Pyroscope's: validation.max-profile-stacktrace-samples and its
// siblings. A profile that exceeds one of them is sent in parts.
const (
	maxStacks  = 16000
	maxDepth   = 1000
	maxMessage = 4<<20 - 64<<10 // bytes, uncompressed
)

// Limits of what is summed up before it is sent, for all series together: then it is sent earlier.
const (
	maxSeries = 4096
	maxNodes  = 2 << 20
)

// series is what is summed up of one event of a service with certain labels.
type series struct {
	service    string
	fixed, own map[string]string
	event      profile.Event
	from, to   time.Time

	b    *profile.Builder // functions, frames, nodes
	sums map[uint32]profile.Count
}

// seriesKey returns what distinguishes a series.
func seriesKey(service string, labels map[string]string, e *profile.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q %d", service, e.Name, e.Unit, e.Kind)
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, " %q=%q", k, labels[k])
	}
	return b.String()
}

// sums are the series that are being summed up.
type sums struct {
	fixed  map[string]string
	series map[string]*series
	nodes  int
}

// add adds a window, of which span was called.
func (u *sums) add(w *Window, from, to time.Time) {
	if u.series == nil {
		u.series = map[string]*series{}
	}
	p := w.Profile
	r := adder{p: p, window: w, sums: u, from: from, to: to, threads: make([][]*part, len(p.Threads)), asked: make([]bool, len(p.Threads)), parts: map[string]*part{}}
	p.Each(func(s *profile.Sample, n uint64) {
		if t := r.part(s); t != nil {
			at := t.node(p.BeforeSkid(s.Node))
			c := t.series.sums[at]
			c.Add(profile.Count{Samples: n, Weight: s.Weight})
			t.series.sums[at] = c
		}
	})
	for _, t := range r.parts {
		u.nodes += t.series.b.Nodes() - t.before
	}
}

func (u *sums) full() bool { return len(u.series) >= maxSeries || u.nodes >= maxNodes }

// adder adds a window to sums.
type adder struct {
	p        *profile.Profile
	window   *Window
	sums     *sums
	from, to time.Time
	asked    []bool    // by thread
	threads  [][]*part // by thread and event; nil: not pushed
	parts    map[string]*part
	depth    []uint32 // of the profile's nodes
}

// part is what a window adds to a series.
type part struct {
	*adder
	series *series
	before int // nodes
	nodes  map[uint32]uint32
	frames map[uint32]uint32
}

// part returns the part to which a sample belongs; nil: none.
func (r *adder) part(s *profile.Sample) *part {
	if int(s.Thread) >= len(r.threads) || int(s.Event) >= len(r.p.Events) {
		return nil
	}
	if !r.asked[s.Thread] {
		r.asked[s.Thread] = true
		r.threads[s.Thread] = r.ask(s.Thread)
	}
	list := r.threads[s.Thread]
	if list == nil {
		return nil
	}
	return list[s.Event]
}

// ask returns the parts of a thread, by event.
func (r *adder) ask(thread uint32) []*part {
	service, labels, ok := r.window.Service, r.window.Labels, true
	if r.window.Of != nil {
		service, labels, ok = r.window.Of(&r.p.Threads[thread])
	}
	if !ok || service == "" {
		return nil
	}
	list := make([]*part, len(r.p.Events))
	for i := range list {
		e := &r.p.Events[i]
		key := seriesKey(service, labels, e)
		if list[i] = r.parts[key]; list[i] != nil {
			continue
		}
		s := r.sums.series[key]
		if s == nil {
			s = &series{service: service, fixed: r.sums.fixed, own: maps.Clone(labels), event: *e, from: r.from, to: r.to, b: profile.NewBuilder(), sums: map[uint32]profile.Count{}}
			r.sums.series[key] = s
		}
		if r.from.Before(s.from) {
			s.from = r.from
		}
		if r.to.After(s.to) {
			s.to = r.to
		}
		list[i] = &part{adder: r, series: s, before: s.b.Nodes(), nodes: map[uint32]uint32{profile.RootNode: profile.RootNode}, frames: map[uint32]uint32{}}
		r.parts[key] = list[i]
	}
	return list
}

// node returns the node of the series that a node of the window's profile is.
func (t *part) node(n uint32) uint32 {
	if at, ok := t.nodes[n]; ok {
		return at
	}
	var path []uint32 // innermost first
	at := uint32(profile.RootNode)
	deep := t.deep(n)
	for m := n; m != profile.RootNode; m = t.p.Nodes[m].Parent {
		if known, ok := t.nodes[m]; ok && !deep {
			at = known
			break
		}
		path = append(path, m)
	}
	if deep {
		return t.shortened(n, path)
	}
	for _, m := range slices.Backward(path) {
		at = t.series.b.Node(at, t.frame(t.p.Nodes[m].Frame))
		t.nodes[m] = at
	}
	return at
}

// deep reports whether the stack of a node has more frames than servers keep.
func (t *part) deep(n uint32) bool {
	if t.depth == nil {
		t.adder.depth = make([]uint32, len(t.p.Nodes))
		for i := 1; i < len(t.p.Nodes); i++ {
			t.depth[i] = t.depth[t.p.Nodes[i].Parent] + 1
		}
	}
	return t.depth[n] > maxDepth
}

// shortened returns the node of a stack that is too deep, from which frames in the middle are left
// out: Pyroscope would leave out the innermost ones, and show the time as another function's.
func (t *part) shortened(n uint32, path []uint32) uint32 {
	const outer = maxDepth / 2
	at := uint32(profile.RootNode)
	add := func(m uint32) { at = t.series.b.Node(at, t.frame(t.p.Nodes[m].Frame)) }
	for _, m := range slices.Backward(path[len(path)-outer:]) {
		add(m)
	}
	gap := t.series.b.Func(profile.Func{Name: "[frames left out]"})
	at = t.series.b.Node(at, t.series.b.Frame(profile.Frame{Func: gap, BCI: -1, Kind: walk.KindStub}))
	for _, m := range slices.Backward(path[:maxDepth-outer-1]) {
		add(m)
	}
	t.nodes[n] = at
	return at
}

// frame returns the frame of the series that a frame of the window's profile is, without what
// would only make stacks differ: addresses, positions in bytecode, which compiler compiled it.
func (t *part) frame(i uint32) uint32 {
	if at, ok := t.frames[i]; ok {
		return at
	}
	f := t.p.Frames[i]
	f.Func = t.series.b.Func(t.p.Funcs[f.Func])
	f.BCI, f.Addr, f.Flags = -1, 0, 0
	if f.Prov != walk.Heuristic {
		f.Prov = walk.Exact
	}
	switch f.Kind {
	case walk.KindInterpreted, walk.KindC1, walk.KindC2, walk.KindNativeMethod:
		f.Kind = walk.KindInterpreted
	case walk.KindTier0, walk.KindInstrumented, walk.KindOSR, walk.KindTier1, walk.KindReadyToRun:
		f.Kind = walk.KindTier0
	case walk.KindCompiled, walk.KindStub, walk.KindAOT:
		f.Kind = walk.KindCompiled
	}
	at := t.series.b.Frame(f)
	t.frames[i] = at
	return at
}

// message is what is sent at once.
type message struct {
	from time.Time
	body []byte // compressed if the protocol does
}

// messages returns everything that was summed up, as messages, and begins anew.
func (u *sums) messages(p *protocol, probability float64) ([]message, error) {
	var out []message
	var failed error
	for _, key := range slices.Sorted(maps.Keys(u.series)) {
		s := u.series[key]
		list, err := s.messages(p, probability)
		failed = errors.Join(failed, err)
		out = append(out, list...)
	}
	u.series, u.nodes = nil, 0
	return out, failed
}

func (s *series) messages(p *protocol, probability float64) ([]message, error) {
	list := make([]pprof.Sum, 0, len(s.sums))
	for node, c := range s.sums {
		if c.Weight > 0 || c.Samples > 0 {
			list = append(list, pprof.Sum{Node: node, Count: c})
		}
	}
	slices.SortFunc(list, func(a, b pprof.Sum) int { return int(a.Node) - int(b.Node) })
	scale(list, probability)
	whole := *s.b.Profile()
	_, value := s.event.TypeName()
	e := s.event
	e.Name = value
	whole.Events = []profile.Event{e}
	whole.Meta = profile.Meta{Start: s.from, Duration: s.to.Sub(s.from)}
	var out []message
	for part := range slices.Chunk(list, maxStacks) {
		if err := s.encode(p, &whole, part, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// encode appends messages for sums, as many as are needed for none to be too large.
func (s *series) encode(p *protocol, whole *profile.Profile, list []pprof.Sum, out *[]message) error {
	b, err := p.encode(s, whole, list)
	if err != nil {
		return err
	}
	if half := len(list) / 2; len(b) > maxMessage && half > 0 {
		if err := s.encode(p, whole, list[:half], out); err != nil {
			return err
		}
		return s.encode(p, whole, list[half:], out)
	}
	if p.gzip {
		if b, err = compress(b); err != nil {
			return err
		}
	}
	*out = append(*out, message{from: s.from, body: b})
	return nil
}

// scale divides values by the part of hosts that push. Rounding errors are carried on, so that sums
// are right to less than one.
func scale(list []pprof.Sum, probability float64) {
	if probability >= 1 {
		return
	}
	var samples, weight float64
	for i := range list {
		c := &list[i].Count
		samples += float64(c.Samples) / probability
		weight += float64(c.Weight) / probability
		c.Samples, c.Weight = uint64(samples), uint64(weight)
		samples -= float64(c.Samples)
		weight -= float64(c.Weight)
	}
}
