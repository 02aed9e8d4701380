package collapsed

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Limits of what a file can make a reader hold.
const (
	maxLine    = 16 << 20 // bytes
	maxNodes   = 32 << 20
	maxSamples = 16 << 20
	// maxUnfolded is how many samples counts are unfolded into at most: a few bytes can stand for
	// very many, and a file can have any length. Further counts are added up by stack.
	maxUnfolded = 4 << 20
)

// ErrSyntax is wrapped by the error for a line that is not a stack.
var ErrSyntax = errors.New("not a collapsed stack, which is FRAME;FRAME;… COUNT")

// threadFrame matches the frame that Write, and async-profiler, put before a stack for its thread.
var threadFrame = regexp.MustCompile(`^\[(.*) tid=(\d{1,10})\]$`)

// Read reads collapsed stacks. The counts become samples of one event,
// "samples", each of weight 1; there are no times. The result has passed Check.
func Read(r io.Reader) (*profile.Profile, error) { return ReadInto(profile.NewBuilder(), r) }

// ReadInto is Read with an empty Builder of the caller, which may keep samples differently.
func ReadInto(b *profile.Builder, r io.Reader) (*profile.Profile, error) {
	b.Meta().Notes = []string{"collapsed files do not keep what was lost, nor which stacks are stitched or guessed"}
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	rd := reader{b: b, gate: b.Meter().Gate(), frames: map[string]uint32{}}
	n := 1
	for ; in.Scan(); n++ {
		text := strings.TrimSpace(in.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if err := rd.line(text); err != nil {
			return nil, fmt.Errorf("read collapsed stacks: line %d: %w", n, err)
		}
	}
	if err := in.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("line %d is longer than %d MiB, the most that candid takes for a stack", n, maxLine>>20)
		}
		return nil, fmt.Errorf("read collapsed stacks: %w", err)
	}
	rd.sum()
	p := b.Finish()
	p.Events = []profile.Event{profile.UnnamedSamples()}
	if rd.merged {
		p.Meta.Notes = append(p.Meta.Notes, "the file's samples are too many to count one by one: some stacks are one sample with all their weight")
	}
	if err := cmp.Or(b.Err(), p.Check()); err != nil {
		return nil, fmt.Errorf("read collapsed stacks: %w", err)
	}
	return p, nil
}

type reader struct {
	b      *profile.Builder
	gate   memlimit.Gate
	frames map[string]uint32
	merged bool
	sums   map[stack]uint64 // for lines that are not unfolded
}

// stack identifies equal lines.
type stack struct {
	node, thread uint32
	end          walk.End
}

func (r *reader) line(text string) error {
	at := strings.LastIndexAny(text, " \t")
	if at <= 0 {
		return ErrSyntax
	}
	// Other tools write fractions.
	count, err := strconv.ParseUint(text[at+1:], 10, 63)
	if err != nil {
		f, ferr := strconv.ParseFloat(text[at+1:], 64)
		if ferr != nil || !(f >= 0 && f < 1<<62) {
			return ErrSyntax
		}
		count = uint64(f + 0.5)
	}
	s := profile.Sample{Weight: 1}
	stack := strings.TrimSpace(text[:at])
	pid, tid, thread := 0, 0, ""
	first, rest, more := strings.Cut(stack, ";")
	if m := threadFrame.FindStringSubmatch(first); m != nil {
		thread = m[1]
		tid, _ = strconv.Atoi(m[2])
		stack = rest
		if !more {
			stack = ""
		}
	}
	first, rest, _ = strings.Cut(stack, ";")
	if end := walk.EndByFrame(first); end != walk.EndComplete {
		s.End, stack = end, rest
	}
	s.Thread = r.b.NamedThread(pid, tid, thread)
	if stack != "[no stack]" {
		for name := range strings.SplitSeq(stack, ";") {
			if name != "" {
				s.Node = r.b.Node(s.Node, r.frame(name))
			}
			if err := r.gate.Pass(); err != nil {
				return err
			}
		}
	}
	return r.add(s, count)
}

func (r *reader) frame(text string) uint32 {
	i, ok := r.frames[text]
	if !ok {
		name, kind := kindOf(strings.ToValidUTF8(text, "\uFFFD"))
		module := ""
		if kind == walk.KindKernel {
			module = "[kernel]"
		}
		i = r.b.Frame(profile.Frame{Func: r.b.Func(profile.Func{Name: name, Module: module}), BCI: -1, Kind: kind})
		r.frames[text] = i
	}
	return i
}

var errTooLarge = errors.New("the file holds more than candid reads: 32 million stack nodes or 16 million stacks")

func (r *reader) add(s profile.Sample, count uint64) error {
	if r.b.Samples() >= maxSamples || r.b.Nodes() > maxNodes {
		return errTooLarge
	}
	room := max(min(maxUnfolded-r.b.Samples(), r.b.Room()), 0)
	if room == 0 || count > 1 && count > uint64(room)/4 {
		if r.sums == nil {
			r.sums = map[stack]uint64{}
		}
		k := stack{s.Node, s.Thread, s.End}
		if len(r.sums) >= maxSamples {
			return errTooLarge
		}
		sum := r.sums[k] + count
		if sum < count {
			return errTooMuch
		}
		r.sums[k] = sum
		r.merged = true
		return nil
	}
	for range count {
		r.b.Add(s)
	}
	return r.b.Err()
}

var errTooMuch = errors.New("a stack's counts come to more than 2^64")

// sum adds the counts that were not unfolded, in an order that depends only on the file.
func (r *reader) sum() {
	keys := slices.SortedFunc(maps.Keys(r.sums), func(a, b stack) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.thread, b.thread), cmp.Compare(a.end, b.end))
	})
	for _, k := range keys {
		r.b.Add(profile.Sample{Node: k.node, Thread: k.thread, End: k.end, Weight: r.sums[k]})
	}
	r.sums = nil
}
