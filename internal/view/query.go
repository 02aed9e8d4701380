package view

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
)

// ErrQuery is wrapped by the errors for what the page may not ask.
var ErrQuery = errors.New("bad query")

// Query chooses samples, in the sense of profile.Filter. The zero Query chooses
// all of the first event.
type Query struct {
	Event    int    // index into Events
	From, To uint64 // ns since the beginning; To 0 is the end
	Threads  []bool // by index into Threads: those that are chosen; nil for all
	States   profile.StateSet
	Focus    []*regexp.Regexp // each must match a function of a stack
	Ignore   []*regexp.Regexp // none may match
	ByThread bool             // keep threads apart in the cells
	Side     Side             // of a pair of recordings
	rewrite  *rewrite         // how the stacks are shown; nil: as they were taken
}

// key returns the same string for queries that choose the same samples.
func (q *Query) key() string {
	words := func(list []*regexp.Regexp) (out []string) {
		for _, re := range list {
			out = append(out, re.String())
		}
		return out
	}
	threads := make([]byte, len(q.Threads))
	for i, chosen := range q.Threads {
		if chosen {
			threads[i] = 1
		}
	}
	return fmt.Sprintf("%d %d %d %v %d %q %q %q %t", q.Event, q.From, q.To, q.States, q.Side, words(q.Focus), words(q.Ignore), threads, q.Threads == nil)
}

// Side is one of two recordings that are compared, or both.
type Side uint8

// The sides.
const (
	Both Side = iota
	Before
	After
)

// Limits of a query: the page never exceeds them, and each expression costs time.
const (
	maxExpressions = 16
	maxExpression  = 8 << 10 // bytes; names have up to flame.MaxText
)

// firstEvent is the event that is shown if none is asked for, as profile.Profile.FirstEvent says.
func (r *Recording) firstEvent() uint64 {
	return uint64(max(0, slices.IndexFunc(r.all, func(c profile.Count) bool { return c.Samples > 0 })))
}

// query reads what the page asks: event, from, to (ns), threads (0.2-5), states (names with
// commas), focus and ignore (expressions, each may be repeated), split, and what rewriteOf reads.
func (r *Recording) query(v url.Values) (Query, error) {
	var q Query
	event, err := number(v, "event", r.firstEvent())
	if err != nil {
		return q, err
	}
	if event > 0 && event >= uint64(len(r.p.Events)) {
		return q, fmt.Errorf("%w: there are %d events", ErrQuery, len(r.p.Events))
	}
	q.Event = int(event)
	if q.From, err = number(v, "from", 0); err != nil {
		return q, err
	}
	if q.To, err = number(v, "to", 0); err != nil {
		return q, err
	}
	if s, ok := v["threads"]; ok {
		q.Threads = make([]bool, len(r.p.Threads))
		if err := ranges(s[0], q.Threads); err != nil {
			return q, err
		}
	}
	for _, name := range strings.Split(v.Get("states"), ",") {
		if name == "" {
			continue
		}
		s, ok := profile.StateByName(name)
		if !ok {
			return q, fmt.Errorf("%w: there is no state %q", ErrQuery, name)
		}
		q.States = q.States.With(s)
	}
	if q.Focus, err = expressions(v["focus"]); err != nil {
		return q, err
	}
	if q.Ignore, err = expressions(v["ignore"]); err != nil {
		return q, err
	}
	if q.rewrite, err = rewriteOf(v); err != nil {
		return q, err
	}
	q.ByThread = v.Get("split") == "1"
	switch side := v.Get("side"); {
	case side == "":
	case side == "before" && r.pair:
		q.Side = Before
	case side == "after" && r.pair:
		q.Side = After
	default:
		return q, fmt.Errorf("%w: there is no side %q", ErrQuery, side)
	}
	return q, nil
}

// asked reads a query of the page and checks that its version of the recording is the current one.
// It also returns the tree that the query is about.
func (r *Recording) asked(v url.Values) (q Query, s *shownTree, err error) {
	if err = r.isVersion(v); err != nil {
		return q, nil, err
	}
	if q, err = r.query(v); err == nil {
		s, err = r.shapeFor(q.rewrite)
	}
	return q, s, err
}

// compared reads a query of the page, and the query that it is compared with: base (ns-ns) is a
// range of time; of two recordings it is the first one; nil: nothing.
func (r *Recording) compared(v url.Values) (q Query, base *Query, err error) {
	if from, to, ok := strings.Cut(v.Get("base"), "-"); ok || r.pair {
		was := maps.Clone(v)
		if r.pair {
			was["side"] = []string{"before"}
			v = maps.Clone(v)
			v["side"] = []string{"after"}
		} else {
			was["from"], was["to"] = []string{from}, []string{to}
		}
		b, err := r.query(was)
		if err != nil {
			return q, nil, err
		}
		base = &b
	}
	q, err = r.query(v)
	return q, base, err
}

// number reads a number from the query of the page; otherwise is the default.
func number(v url.Values, name string, otherwise uint64) (uint64, error) {
	if v.Get(name) == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(v.Get(name), 10, 62)
	if err != nil {
		return 0, fmt.Errorf("%w: %s is no number", ErrQuery, name)
	}
	return n, nil
}

func expressions(list []string) ([]*regexp.Regexp, error) {
	if len(list) > maxExpressions {
		return nil, fmt.Errorf("%w: more than %d expressions", ErrQuery, maxExpressions)
	}
	var out []*regexp.Regexp
	for _, s := range list {
		if len(s) > maxExpression {
			return nil, fmt.Errorf("%w: an expression of %d bytes", ErrQuery, len(s))
		}
		re, err := regexp.Compile(s)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrQuery, err)
		}
		out = append(out, re)
	}
	return out, nil
}

// ranges sets the indices that a list such as 0.2-5 names.
func ranges(s string, set []bool) error {
	for _, part := range strings.Split(s, ".") {
		if part == "" {
			continue
		}
		a, b, isRange := strings.Cut(part, "-")
		if !isRange {
			b = a
		}
		from, err1 := strconv.ParseUint(a, 10, 32)
		to, err2 := strconv.ParseUint(b, 10, 32)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("%w: %q is no list of numbers", ErrQuery, part)
		}
		for i := from; i <= to && i < uint64(len(set)); i++ {
			set[i] = true
		}
	}
	return nil
}

// wanted reports for every place whether its stack passes the expressions; nil if all do.
func (r *Recording) wanted(q *Query) []bool {
	if len(q.Focus)+len(q.Ignore) == 0 {
		return nil
	}
	out := make([]bool, len(r.parent))
	for i := range out {
		out[i] = true
	}
	for _, re := range q.Focus {
		for i, m := range r.matching(re) {
			out[i] = out[i] && m
		}
	}
	for _, re := range q.Ignore {
		for i, m := range r.matching(re) {
			out[i] = out[i] && !m
		}
	}
	return out
}

// keptMatches is how many expressions are remembered: dragging over the time asks the same ones
// again and again.
const keptMatches = 8

// matching reports for every place whether a function whose name matches is on its stack.
func (r *Recording) matching(re *regexp.Regexp) []bool {
	r.mu.Lock()
	known := r.matches[re.String()]
	r.mu.Unlock()
	if known != nil {
		return known
	}
	funcs := make(map[uint32]bool)
	symbols := make([]bool, len(r.base.tree.Symbols))
	for i, s := range r.base.tree.Symbols {
		if int(s.Func) >= len(r.p.Funcs) {
			continue // stands for missing frames
		}
		m, ok := funcs[s.Func]
		if !ok {
			m = named(re, &r.p.Funcs[s.Func])
			funcs[s.Func] = m
		}
		symbols[i] = m
	}
	out := make([]bool, len(r.parent))
	for i := 1; i < len(out); i++ {
		out[i] = out[r.parent[i]] || symbols[r.sym[i]]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.matches[re.String()] == nil {
		if len(r.tried) == keptMatches {
			delete(r.matches, r.tried[0])
			r.tried = r.tried[1:]
		}
		r.matches[re.String()] = out
		r.tried = append(r.tried, re.String())
	}
	return out
}

// chosen is a Query prepared for one recording.
type chosen struct {
	q           *Query
	sorts       []bool // of samples
	keep        []bool // by index into ends; nil for all
	threads     []bool // nil for all
	first, last uint32 // threads of the side
}

func (r *Recording) choose(q *Query) chosen {
	c := chosen{q: q, threads: q.Threads, last: ^uint32(0), sorts: make([]bool, len(r.cols.sorts))}
	for i, s := range r.cols.sorts {
		c.sorts[i] = int(s.event) == q.Event && q.States.Has(s.state)
	}
	if keep := r.wanted(q); keep != nil {
		c.keep = make([]bool, len(r.cols.ends))
		for i, node := range r.cols.ends {
			c.keep[i] = keep[node]
		}
	}
	switch q.Side {
	case Before:
		c.last = r.second - 1 // there are none if this wraps around
		if r.second == 0 {
			c.first, c.last = 1, 0
		}
	case After:
		c.first = r.second
	}
	return c
}

// takes reports whether a sample is chosen; its time is not looked at.
func (c *chosen) takes(r *Recording, i int) bool {
	return c.sorts[r.cols.sort[i]] && c.passes(r.cols.last[i], r.cols.thread[i])
}

// passes reports whether samples of a thread that end in an end are chosen.
func (c *chosen) passes(last, thread uint32) bool {
	return (c.keep == nil || c.keep[last]) && (c.threads == nil || c.threads[thread]) && thread >= c.first && thread <= c.last
}
