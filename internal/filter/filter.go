// Package filter selects the part of a recording that a user asks for, in the words of the command
// line: the same words mean the same in every command.
package filter

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/capture/event"
	"github.com/candid-profiler/candid/internal/profile"
)

// ErrUsage is wrapped by the errors for filters that are invalid, or that this recording cannot
// answer; their text says so in one line and names the flag.
var ErrUsage = errors.New("wrong filter")

// usageError keeps the sentinel out of its text.
type usageError struct{ text string }

func (e *usageError) Error() string        { return e.text }
func (e *usageError) Is(target error) bool { return target == ErrUsage }

func wrong(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// ErrEmpty is wrapped by the error if no sample passes a filter.
var ErrEmpty = errors.New("no samples")

// Words are what a user wrote, each "" or nil if nothing was.
type Words struct {
	Event       string
	Process     string   // numbers with commas, else an expression
	Thread      string   // expression
	ThreadKinds []string // of the function ThreadKinds
	States      []string // of profile.StateNames, and Waits
	Labels      []string // each a key, or KEY=EXPRESSION
	Focus       string   // expression
	Ignore      string   // expression
	From, To    string   // as ParseMoment reads them
}

// ThreadKinds returns what may be written after --thread-kind.
func ThreadKinds() []string { return append(profile.ThreadKinds(), profile.UnknownThreadKind) }

// Waits stands for every state in which a thread waits for something.
const Waits = "waits"

// Spec is a filter that is not bound to a recording yet. The zero Spec asks for everything.
type Spec struct {
	words    Words
	filter   profile.Filter // without Event, From and To
	from, to Moment
}

// Parse reads what a user wrote. The error wraps ErrUsage.
func Parse(w Words) (*Spec, error) {
	s := &Spec{words: w}
	for _, e := range []struct {
		flag, text string
		to         **regexp.Regexp
	}{{"--process", w.Process, &s.filter.Process}, {"--thread", w.Thread, &s.filter.Thread}, {"--focus", w.Focus, &s.filter.Focus}, {"--ignore", w.Ignore, &s.filter.Ignore}} {
		if e.text == "" {
			continue
		}
		if e.flag == "--process" {
			if s.filter.PIDs = pids(e.text); s.filter.PIDs != nil {
				continue
			}
		}
		re, err := regexp.Compile(e.text)
		if err != nil {
			return nil, wrong("%s: %v", e.flag, err)
		}
		*e.to = re
	}
	for _, k := range w.ThreadKinds {
		if !slices.Contains(ThreadKinds(), k) {
			return nil, wrong("--thread-kind: no kind of thread is called %q: there are %s", k, strings.Join(ThreadKinds(), ", "))
		}
	}
	s.filter.ThreadKinds = w.ThreadKinds
	for _, name := range w.States {
		if name == Waits {
			for st := profile.StateSleeping; int(st) < profile.NumStates; st++ {
				s.filter.States = s.filter.States.With(st)
			}
			continue
		}
		st, ok := profile.StateByName(name)
		if !ok {
			return nil, wrong("--state %q: there are %s, %s", name, strings.Join(profile.StateNames(), ", "), Waits)
		}
		s.filter.States = s.filter.States.With(st)
	}
	for _, text := range w.Labels {
		key, expr, valued := strings.Cut(text, "=")
		if key == "" {
			return nil, wrong("--label %q: write KEY=REGEX, or KEY for any value", text)
		}
		l := profile.LabelFilter{Key: key}
		if valued {
			re, err := regexp.Compile(expr)
			if err != nil {
				return nil, wrong("--label: %v", err)
			}
			l.Value = re
		}
		s.filter.Labels = append(s.filter.Labels, l)
	}
	var err error
	if s.from, err = ParseMoment(w.From); err != nil {
		return nil, wrong("--from %q: %v", w.From, err)
	}
	if s.to, err = ParseMoment(w.To); err != nil {
		return nil, wrong("--to %q: %v", w.To, err)
	}
	if s.from.kind == s.to.kind && (s.from.kind == sinceStart || s.from.kind == beforeEnd) && s.to.since <= s.from.since {
		return nil, s.noStretch()
	}
	return s, nil
}

// pids reads numbers of processes with commas between them; nil if it is anything else.
func pids(text string) (list []int) {
	for _, word := range strings.Split(text, ",") {
		pid, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return nil
		}
		list = append(list, int(pid))
	}
	return list
}

func (s *Spec) noStretch() error {
	return wrong("--from %s --to %s is no stretch of time", s.words.From, s.words.To)
}

// Filters reports whether anything but the event is asked for.
func (s *Spec) Filters() bool {
	w := s.words
	return w.Process != "" || w.Thread != "" || w.ThreadKinds != nil || w.States != nil || w.Labels != nil || w.Focus != "" || w.Ignore != "" || s.from.kind != unset || s.to.kind != unset
}

// Event returns the name of the event that is asked for, "" for none.
func (s *Spec) Event() string { return s.words.Event }

// String returns the filter as flags, "" for none; the event is not in it.
func (s *Spec) String() string {
	var out []string
	add := func(flag, text string) {
		if text != "" {
			out = append(out, flag+" "+quoted(text))
		}
	}
	w := s.words
	add("--process", w.Process)
	add("--thread", w.Thread)
	add("--thread-kind", strings.Join(w.ThreadKinds, ","))
	add("--state", strings.Join(w.States, ","))
	for _, l := range w.Labels {
		add("--label", l)
	}
	add("--focus", w.Focus)
	add("--ignore", w.Ignore)
	add("--from", w.From)
	add("--to", w.To)
	return strings.Join(out, " ")
}

// quoted returns a word quoted for a shell.
func quoted(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("+-_.,:/@%=^", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// EventOf returns the index of the event of a recording that a name means: its own name, or another
// name for the same event.
func EventOf(p *profile.Profile, name string) (int, bool) {
	i, ok := p.EventByName(name)
	if !ok {
		i = slices.IndexFunc(p.Events, func(e profile.Event) bool { return event.Same(e.Name, name) })
	}
	return i, i >= 0
}

// For returns the filter for one recording, whose events, beginning and end are known. The error
// wraps ErrUsage if this recording cannot answer it, and ErrEmpty if nothing can be left.
func (s *Spec) For(p *profile.Profile) (profile.Filter, error) {
	f := s.filter
	if s.words.Event == "" {
		f.Event = p.FirstEvent()
	} else {
		i, ok := EventOf(p, s.words.Event)
		if !ok {
			return f, wrong("--event %q: the recording has %s", s.words.Event, p.EventNames())
		}
		f.Event = i
	}
	if s.from.kind == unset && s.to.kind == unset {
		return f, nil
	}
	if count(p) > 0 && !p.HasTimes() {
		return f, wrong("--from and --to: this profile has no times of single samples (pprof and collapsed files merge equal stacks): it cannot be cut by time")
	}
	end := Length(p)
	from, err := s.from.in(p, end, 0)
	if err != nil {
		return f, wrong("--from %s: %v", s.words.From, err)
	}
	to, err := s.to.in(p, end, 0)
	if err != nil {
		return f, wrong("--to %s: %v", s.words.To, err)
	}
	switch {
	case s.to.kind != unset && to <= 0, s.from.kind != unset && from > end:
		return f, fmt.Errorf("%w: %s is outside of the recording, which is %v long%s", ErrEmpty, s.stretch(), end.Round(time.Millisecond), began(p))
	case s.to.kind != unset && to <= from:
		return f, s.noStretch()
	}
	f.From, f.To = max(from, 0), max(to, 0)
	return f, nil
}

// stretch returns the range of time that is asked for, as flags.
func (s *Spec) stretch() string {
	return (&Spec{words: Words{From: s.words.From, To: s.words.To}}).String()
}

// Certain returns the part of the filter that is known before a recording is read: samples that it
// does not choose may be left out while reading. Their number is the left of Apply.
func (s *Spec) Certain() profile.Filter {
	f := profile.Filter{States: s.filter.States, Focus: s.filter.Focus, Ignore: s.filter.Ignore}
	if s.words.Event != "" {
		return profile.Filter{} // what is left is reported for the event only
	}
	if s.from.kind == sinceStart {
		f.From = s.from.since
	}
	if s.to.kind == sinceStart {
		f.To = s.to.since
	}
	return f
}

// Cuts reports whether a range of time is asked for.
func (s *Spec) Cuts() bool { return s.from.kind != unset || s.to.kind != unset }

// Summable reports whether samples that Certain chooses may be summed up before the rest of the
// filter is applied, because it needs no times any more.
func (s *Spec) Summable() bool {
	known := func(m Moment) bool { return m.kind == unset || m.kind == sinceStart && s.words.Event == "" }
	return known(s.from) && known(s.to)
}

// Apply returns what is left of a recording, as one of its own, which shares everything that does
// not change with p. If an event is asked for, only that is left. If a range of time is, the result
// begins with it, and records that its cost is that of the whole. The error wraps ErrUsage or, if
// there were samples and none is left, ErrEmpty. left is how many samples were left out while p was
// read.
func (s *Spec) Apply(p *profile.Profile, left uint64) (*profile.Profile, Passed, error) {
	f, err := s.For(p)
	if err != nil {
		return nil, Passed{}, err
	}
	all, end := count(p)+left, Length(p)
	if s.words.Event != "" {
		p = profile.Only(p, f.Event)
	}
	out := p
	if s.Filters() {
		out = profile.Cut(profile.Apply(p, f), f, end)
	}
	if count(out) < all || out.Meta.Duration < p.Meta.Duration {
		part := *out
		part.Meta.Cost.Of(all, end)
		out = &part
	}
	n := Passed{All: count(p) + left, Left: count(out)}
	n.Unknown = unknownKinds(p, f)
	return out, n, s.check(p, n)
}

// Choose returns the filter for one recording, of which it leaves something: the errors are those
// of Apply.
func (s *Spec) Choose(p *profile.Profile) (profile.Filter, error) {
	f, err := s.For(p)
	if err != nil || !s.Filters() {
		return f, err
	}
	all, left := p.Passing(f)
	return f, s.check(p, Passed{all.Samples, left.Samples, p.OfUnknownKind(f)})
}

// unknownKinds counts the samples of all events that a filter leaves out only because the kind of
// their thread is not known.
func unknownKinds(p *profile.Profile, f profile.Filter) (n uint64) {
	for f.Event = range p.Events {
		n += p.OfUnknownKind(f)
	}
	return n
}

// check returns an error that wraps ErrEmpty if there are samples and none passes.
func (s *Spec) check(p *profile.Profile, n Passed) error {
	if n.Left > 0 || n.All == 0 || !s.Filters() {
		return nil
	}
	why := ""
	if s.words.States != nil && n.All == count(p) { // otherwise some were not even read
		var seen profile.StateSet
		p.Each(func(s *profile.Sample, _ uint64) { seen = seen.With(s.State) })
		var names []string
		for st := range profile.State(profile.NumStates) {
			if seen != 0 && seen.Has(st) {
				names = append(names, st.String())
			}
		}
		why = "; the states in it are " + strings.Join(names, ", ")
	}
	if s.words.Labels != nil {
		if keys := p.SomeLabelKeys(); keys != nil {
			why += "; the labels in it are " + strings.Join(keys, ", ")
		} else {
			why += "; it has no labels"
		}
	}
	return fmt.Errorf("%w: none of %s passes %s%s%s", ErrEmpty, grouped(n.All), s, why, n.unknown())
}

func count(p *profile.Profile) uint64 { return p.SampleCount() }

// Passed is how many samples of a recording a filter leaves.
type Passed struct {
	All, Left uint64
	Unknown   uint64 // left out only because the kind of their thread is not known
}

// String returns the numbers as "of 12,345 samples, 3,210 (26.0%) pass".
func (n Passed) String() string {
	verb := "pass"
	if n.Left == 1 {
		verb = "passes"
	}
	return fmt.Sprintf("of %s samples, %s (%.1f%%) %s%s", grouped(n.All), grouped(n.Left), 100*float64(n.Left)/float64(max(n.All, 1)), verb, n.unknown())
}

// unknown returns how many samples a filter by kind of thread could not judge.
func (n Passed) unknown() string {
	if n.Unknown == 0 {
		return ""
	}
	return fmt.Sprintf("; left out are %s (%.1f%%) of threads whose kind is not known (--thread-kind %s)", grouped(n.Unknown), 100*float64(n.Unknown)/float64(max(n.All, 1)), profile.UnknownThreadKind)
}

// grouped formats a number with its thousands apart.
func grouped(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
