package push

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// item is a message that is neither sent nor dropped.
type item struct {
	from time.Time
	body []byte // nil: in the segment
	size int

	seg   *segment // nil: only in memory
	index uint32
	at    stored

	busy      bool      // it is being sent
	tries     int       // replies that are final after a few times
	notBefore time.Time // of this item
	gone      bool      // it was dropped while it was busy
}

// buffer holds what was not sent so far, in files if it has a directory. It is not safe for
// concurrent use.
type buffer struct {
	protocol string
	dir      string
	root     *os.Root // nil: only memory
	lock     *os.File
	max      int64
	age      time.Duration
	next     uint64 // number of the next segment
	items    []*item
	bytes    int64 // of segments and of what is only in memory
	inMemory int64
	onDrop   func(n int, reason string)
	onWarn   func(text string)
	failing  bool // the last write to the directory failed
}

const segmentSuffix = ".push"

// maxSegments is how many segments are looked at in a directory.
const maxSegments = 1 << 16

// openBuffer opens the buffer and takes over what an earlier process left in it. ambiguous is how many
// messages were being sent when that process ended: they are not sent again.
func openBuffer(c *Config, onDrop func(int, string), onWarn func(string)) (b *buffer, ambiguous int, err error) {
	b = &buffer{protocol: c.Type, dir: c.Buffer.Dir, max: c.Buffer.Max, age: c.Buffer.Age, onDrop: onDrop, onWarn: onWarn}
	if b.dir == "" {
		return b, 0, nil
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, 0, fmt.Errorf("buffer: %w", err)
	}
	if b.root, err = os.OpenRoot(b.dir); err != nil {
		return nil, 0, fmt.Errorf("buffer: %w", err)
	}
	if b.lock, err = b.root.OpenFile("lock", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		b.close()
		return nil, 0, fmt.Errorf("buffer: %s cannot be locked: %w", b.dir, err)
	}
	if !lock(b.lock) {
		b.close()
		return nil, 0, fmt.Errorf("buffer: %s is in use: each push: entry of each agent needs a directory of its own", b.dir)
	}
	ambiguous, err = b.takeOver()
	if err != nil {
		b.close()
		return nil, 0, fmt.Errorf("buffer: %w", err)
	}
	return b, ambiguous, nil
}

func (b *buffer) close() {
	if b.lock != nil {
		b.lock.Close()
	}
	if b.root != nil {
		b.root.Close()
	}
}

// takeOver reads the segments that are there.
func (b *buffer) takeOver() (ambiguous int, err error) {
	d, err := b.root.Open(".")
	if err != nil {
		return 0, err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxSegments)
	if err != nil && len(names) == 0 {
		return 0, nil // empty
	}
	slices.Sort(names)
	for _, name := range names {
		number, isSegment := segmentNumber(name)
		if !isSegment {
			continue
		}
		b.next = max(b.next, number+1)
		ambiguous += b.takeSegment(name)
	}
	return ambiguous, nil
}

func segmentNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	n, err := strconv.ParseUint(digits, 10, 63)
	return n, ok && err == nil
}

// takeSegment takes over what was not sent of a segment, and removes it if nothing is left.
func (b *buffer) takeSegment(name string) (ambiguous int) {
	drop := func(why string) {
		b.onWarn(fmt.Sprintf("%s in %s %s and was removed", name, b.dir, why))
		b.onDrop(1, "damaged-buffer")
		_ = b.root.Remove(name)
	}
	st, err := b.root.Lstat(name)
	if err != nil {
		return 0
	}
	if !st.Mode().IsRegular() {
		b.onWarn(fmt.Sprintf("%s in %s is not a file and is ignored", name, b.dir))
		return 0
	}
	f, err := b.root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		b.onWarn(fmt.Sprintf("%s in %s cannot be read: %v", name, b.dir, err))
		return 0
	}
	s, ok := scan(f, st.Size(), b.protocol)
	if ok && s.end < st.Size() {
		ok = f.Truncate(s.end) == nil // new records must follow whole ones
	}
	f.Close()
	if !ok {
		drop("holds nothing that can be sent to a " + b.protocol + " server")
		return 0
	}
	if s.damaged {
		b.onWarn(fmt.Sprintf("%s in %s is damaged: what may have been sent from it is not sent again", name, b.dir))
	}
	g := &segment{name: name, size: s.end}
	var list []*item
	for i := range s.messages {
		m := &s.messages[i]
		switch {
		case m.settled:
		case m.sending || s.damaged:
			ambiguous++
			_ = g.mark(b.root, recordSettled, uint32(i))
		default:
			list = append(list, &item{from: m.from, size: m.size, seg: g, index: uint32(i), at: *m})
		}
	}
	g.left = len(list)
	b.bytes += g.size
	b.items = append(b.items, list...)
	if g.left == 0 {
		b.remove(g)
	}
	return ambiguous
}

// put adds messages. If they cannot be written they are kept in memory.
func (b *buffer) put(list []message) {
	if len(list) == 0 {
		return
	}
	var g *segment
	out := segmentHeader(b.protocol)
	items := make([]*item, len(list))
	for i, m := range list {
		out = appendRecord(out, recordMessage, uint32(i), m.from, m.body)
		it := &item{from: m.from, size: len(m.body), index: uint32(i)}
		it.at = stored{from: m.from, off: int64(len(out) - len(m.body)), size: len(m.body), sum: checksum(m.body)}
		items[i] = it
	}
	if b.root != nil {
		var err error
		if g, err = b.write(out); err != nil && !b.failing {
			b.onWarn(fmt.Sprintf("%s cannot be written to, so that at most %d MB are kept, in memory: %v", b.dir, DefaultMaxMemory>>20, err))
		}
		b.failing = err != nil
	}
	for i, it := range items {
		if it.seg = g; g == nil {
			it.body = list[i].body
			b.bytes += int64(it.size)
			b.inMemory += int64(it.size)
		}
	}
	if g != nil {
		g.left = len(items)
	}
	b.items = append(b.items, items...)
	b.limit()
}

// write writes a new segment.
func (b *buffer) write(content []byte) (*segment, error) {
	g := &segment{name: fmt.Sprintf("%020d%s", b.next, segmentSuffix), size: int64(len(content))}
	b.next++
	f, err := b.root.OpenFile(g.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = b.root.Remove(g.name)
		return nil, err
	}
	b.bytes += g.size
	return g, nil
}

// limit drops what came first until the rest is not more than may be kept.
func (b *buffer) limit() {
	memory := b.max
	if b.root != nil {
		memory = min(b.max, DefaultMaxMemory)
	}
	for i := 0; i < len(b.items) && (b.bytes > b.max || b.inMemory > memory); {
		it := b.items[i]
		if it.busy || it.seg == nil && b.inMemory <= memory && b.bytes <= b.max {
			i++
			continue
		}
		b.onDrop(1, "buffer-full")
		b.settle(it) // removes it from items
	}
}

// expire drops what is too old.
func (b *buffer) expire(now time.Time) {
	for i := 0; i < len(b.items); {
		it := b.items[i]
		if it.busy || now.Sub(it.from) <= b.age {
			i++
			continue
		}
		b.onDrop(1, "too-old")
		b.settle(it)
	}
}

// ready returns the first message that can be sent now; nil if there is none. wait is when the next
// one can be tried; zero: none.
func (b *buffer) ready(now time.Time) (it *item, wait time.Time) {
	for _, it := range b.items {
		switch {
		case it.busy:
		case !it.notBefore.After(now):
			return it, wait
		case wait.IsZero() || it.notBefore.Before(wait):
			wait = it.notBefore
		}
	}
	return nil, wait
}

// body returns a message's body; false if it cannot be read any more.
func (b *buffer) body(it *item) ([]byte, bool) {
	if it.seg == nil {
		return it.body, true
	}
	f, err := b.root.Open(it.seg.name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	return readBody(f, &it.at)
}

// mark notes what is known of a message.
func (b *buffer) mark(it *item, kind byte) {
	if it.seg == nil {
		return
	}
	before := it.seg.size
	if err := it.seg.mark(b.root, kind, it.index); err != nil && !b.failing && !errors.Is(err, fs.ErrNotExist) {
		b.failing = true
		b.onWarn(fmt.Sprintf("%s cannot be written to: what is sent now may be sent twice if candid is killed: %v", b.dir, err))
	}
	b.bytes += it.seg.size - before
}

// settle removes a message.
func (b *buffer) settle(it *item) {
	i := slices.Index(b.items, it)
	if i < 0 {
		return
	}
	b.items = slices.Delete(b.items, i, i+1)
	if it.seg == nil {
		b.bytes -= int64(it.size)
		b.inMemory -= int64(it.size)
		return
	}
	if it.seg.left--; it.seg.left > 0 || !b.remove(it.seg) {
		b.mark(it, recordSettled)
	}
}

// remove removes a segment, and reports whether it is gone.
func (b *buffer) remove(g *segment) bool {
	b.bytes -= g.size
	err := b.root.Remove(g.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.onWarn(fmt.Sprintf("%s in %s cannot be removed: %v", g.name, b.dir, err))
		return false
	}
	return true
}

// oldest returns when the oldest message begins; zero if there is none.
func (b *buffer) oldest() time.Time {
	var t time.Time
	for _, it := range b.items {
		if t.IsZero() || it.from.Before(t) {
			t = it.from
		}
	}
	return t
}
