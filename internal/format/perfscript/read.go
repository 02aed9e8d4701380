// Package perfscript reads the output of perf script: for each sample a line with thread, time and
// event, and a line for each frame of its stack, the innermost first.
// https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/tools/perf/builtin-script.c
package perfscript

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Limits of what a file can make a reader hold.
const (
	maxLine    = 1 << 20 // bytes
	maxNodes   = 32 << 20
	maxSamples = 16 << 20
	maxThreads = 1 << 20
	maxDepth   = 1 << 14 // frames of a stack; perf's own limit is kernel.perf_event_max_stack
	maxCached  = 1 << 20 // lines that are cached with their meaning
	maxKey     = 1 << 10 // bytes of a cached line
	maxFrames  = 4 << 20 // different places in code
	maxEvents  = 1 << 10
)

// ErrSyntax is wrapped by the error for a line that perf script does not print.
var ErrSyntax = errors.New("not a line of perf script")

var errTooLarge = errors.New("the file holds more than candid reads: 32 million stack nodes, 16 million samples, 4 million frames, a million threads")

// Is reports whether a file with this beginning is the output of perf script. head may end in the
// middle of a line.
func Is(head []byte) bool {
	described := false // by --header, whose output may be longer than head
	for len(head) > 0 {
		line, rest, whole := bytes.Cut(head, []byte("\n"))
		head = rest
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) == 0 || trimmed[0] == '#' {
			described = described || bytes.HasPrefix(trimmed, []byte("# captured on")) || bytes.HasPrefix(trimmed, []byte("# perf version"))
			continue
		}
		if line[0] == '\t' { // perf script -F ip,sym prints no line for the sample itself
			_, ok := parseFrame(line)
			return ok
		}
		_, ok := parseHeader(line)
		return ok && (whole || bytes.HasSuffix(trimmed, []byte(":")))
	}
	return described
}

// Read reads the output of perf script, with any of its fields that a profile can hold. The result
// has passed Check.
func Read(r io.Reader) (*profile.Profile, error) { return ReadInto(profile.NewBuilder(), r) }

// ReadInto is Read with an empty Builder of the caller, which may keep samples differently.
func ReadInto(b *profile.Builder, r io.Reader) (*profile.Profile, error) {
	rd := reader{b: b, gate: b.Meter().Gate(), frames: map[string]frame{}, threads: map[string]who{}, events: map[string]int{}}
	in := bufio.NewReaderSize(r, maxLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if err != nil && err != io.EOF {
			if errors.Is(err, bufio.ErrBufferFull) {
				err = fmt.Errorf("line %d is longer than %d bytes", n, maxLine)
			}
			return nil, fmt.Errorf("read perf script: %w", err)
		}
		if lerr := rd.line(bytes.TrimRight(line, "\r\n")); lerr != nil {
			return nil, fmt.Errorf("read perf script: line %d: %w", n, lerr)
		}
		if err == io.EOF {
			break
		}
	}
	if err := cmp.Or(rd.flush(), b.Err()); err != nil {
		return nil, fmt.Errorf("read perf script: %w", err)
	}
	p := rd.finish()
	if err := cmp.Or(b.Err(), p.Check()); err != nil {
		return nil, fmt.Errorf("read perf script: %w", err)
	}
	return p, nil
}

type reader struct {
	b       *profile.Builder
	gate    memlimit.Gate
	frames  map[string]frame // by the whole line
	threads map[string]who   // by the beginning of a line
	events  map[string]int   // indices of kinds
	kinds   []event

	// The sample whose lines are being read.
	open  bool
	head  header
	stack []frame // innermost first
	cut   bool    // it has more frames

	timed       bool
	first, last uint64
	lost        uint64
	command     string
	host        string
	version     string
}

type who struct {
	index    uint32
	pid, tid int
}

// event is what is known of an event from its samples.
type event struct {
	name    string
	samples uint64
	weight  uint64
	weighed bool // its samples contain what they stand for
}

// line handles one line, without its end.
func (r *reader) line(line []byte) error {
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		return r.flush()
	case line[0] == '#':
		r.comment(string(line))
		return nil
	case line[0] == '\t':
		return r.frame(line)
	case r.open && bytes.HasPrefix(line, []byte("  ")) && r.source(line):
		return nil
	}
	h, ok := parseHeader(line)
	if !ok {
		// Everything else that perf prints of a sample (registers, source code, memory) is between
		// its first line and the empty line that ends it.
		if r.open || line[0] == ' ' {
			return nil
		}
		return ErrSyntax
	}
	if err := r.flush(); err != nil {
		return err
	}
	if h.notice {
		if rest, ok := bytes.CutPrefix(h.rest, []byte("PERF_RECORD_LOST ")); ok {
			r.losses(string(rest))
		}
		return nil
	}
	if h.timed {
		if !r.timed {
			r.first = h.time
		}
		r.timed = true
		r.first, r.last = min(r.first, h.time), max(r.last, h.time)
	}
	thread, err := r.who(h.who)
	if err != nil {
		return err
	}
	kind, ok := r.event(h.event)
	if !ok {
		return fmt.Errorf("%d different events: %w", maxEvents, errTooLarge)
	}
	rest := h.rest
	h.thread, h.kind, h.who, h.event, h.rest = thread, kind, nil, nil, nil // they point into a buffer that is reused
	r.open, r.head = true, h
	// Without call chains the only frame follows the event.
	if f, ok := parseFrame(rest); ok && f.module != "" {
		r.stack = append(r.stack[:0], r.intern(f))
	}
	return nil
}

// losses counts what --show-lost-events prints.
func (r *reader) losses(text string) {
	if _, n, ok := strings.Cut(text, "lost "); ok {
		if lost, err := strconv.ParseUint(strings.TrimSpace(n), 10, 32); err == nil {
			r.lost += lost
		}
	}
}

// frame handles a line of a stack.
func (r *reader) frame(line []byte) error {
	if len(r.stack) >= maxDepth {
		r.cut = true
		return nil
	}
	if !r.open { // -F ip,sym
		kind, _ := r.event([]byte("samples"))
		thread, err := r.who(nil)
		if err != nil {
			return err
		}
		r.open, r.head = true, header{thread: thread, kind: kind}
	}
	if r.head.lone {
		// The text after the event was not a frame after all.
		r.head.lone, r.stack = false, r.stack[:0]
	}
	f, ok := r.frames[string(line)]
	if !ok {
		parsed, good := parseFrame(line)
		if !good {
			return nil
		}
		f = r.intern(parsed)
		if len(r.frames) >= maxCached {
			clear(r.frames)
		}
		if len(line) <= maxKey {
			r.frames[string(line)] = f
		}
	}
	r.stack = append(r.stack, f)
	return nil
}

// source handles the line "  file:line" that -F srcline prints below a frame.
func (r *reader) source(line []byte) bool {
	text := bytes.TrimSpace(line)
	at := bytes.LastIndexByte(text, ':')
	if at <= 0 || len(r.stack) == 0 {
		return false
	}
	n, err := strconv.ParseUint(string(text[at+1:]), 10, 31)
	if err != nil || bytes.ContainsAny(text[:at], " \t") {
		return false
	}
	f := &r.stack[len(r.stack)-1]
	f.file, f.line = strings.ToValidUTF8(string(text[:at]), "\uFFFD"), int32(n)
	return true
}

// flush adds the sample that has been read, if there is one.
func (r *reader) flush() error {
	if !r.open {
		return nil
	}
	if err := r.gate.Pass(); err != nil {
		return err
	}
	if r.b.Single() >= maxSamples || r.b.Nodes() > maxNodes || len(r.b.Threads()) > maxThreads || len(r.b.Frames()) > maxFrames {
		return errTooLarge
	}
	s := profile.Sample{Time: r.head.time, Thread: r.head.thread, Event: uint16(r.head.kind), Weight: 1}
	k := &r.kinds[r.head.kind]
	if r.head.weighed {
		s.Weight, k.weighed = r.head.weight, true
	}
	k.samples++
	k.weight += s.Weight
	// A function that was inlined is in the file of the one that it was inlined into, which has the
	// same address. If there is none, perf knew the function itself under another name and took
	// that for inlined.
	var outer frame
	for i := len(r.stack) - 1; i >= 0; i-- {
		f := &r.stack[i]
		switch {
		case f.kind != walk.KindInlined:
			outer = *f
		case i < len(r.stack)-1 && f.addr == outer.addr:
			f.module = outer.module
		default:
			f.kind, outer = walk.KindNative, *f
		}
		s.Node = r.b.Node(s.Node, r.place(f))
	}
	switch {
	case len(r.stack) == 0:
		s.End = walk.EndUnread
	case r.cut:
		s.End = walk.EndTruncated
	}
	r.b.Add(s)
	r.open, r.cut, r.stack = false, false, r.stack[:0]
	return nil
}

// who returns the thread of a line that begins with text: its name and numbers.
func (r *reader) who(text []byte) (uint32, error) {
	if w, ok := r.threads[string(text)]; ok {
		return w.index, nil
	}
	if len(r.threads) >= maxThreads {
		return 0, errTooLarge
	}
	name, pid, tid := splitWho(text)
	w := who{r.b.Thread(pid, tid, name), pid, tid}
	// perf prints the name that a thread had at that moment: the last one is its name after its
	// program had set it up.
	if th := &r.b.Threads()[w.index]; !strings.HasPrefix(name, ":") {
		th.Name, th.OSName = name, name
	}
	r.threads[string(text)] = w
	return w.index, nil
}

// event returns the index of an event's kind.
func (r *reader) event(name []byte) (int, bool) {
	i, ok := r.events[string(name)]
	if !ok {
		if len(r.kinds) >= maxEvents {
			return 0, false
		}
		i = len(r.kinds)
		text := strings.ToValidUTF8(string(name), "\uFFFD")
		r.kinds = append(r.kinds, event{name: text})
		r.events[string(name)] = i
	}
	return i, true
}
