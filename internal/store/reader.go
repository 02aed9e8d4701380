package store

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/profile"
)

// Reader reads a store, also while another process writes to it. Its methods may be called from
// several goroutines.
type Reader struct {
	dir string

	mu     sync.Mutex
	damage []string
}

// Open opens a store to read it. The error wraps ErrNoStore if the directory is none.
func Open(dir string) (*Reader, error) {
	list, err := days(dir)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	if len(list) == 0 {
		if _, err := os.Stat(filepath.Join(dir, lockName)); err != nil {
			return nil, fmt.Errorf("open %s: %w: no folder of a day is in it", dir, ErrNoStore)
		}
	}
	return &Reader{dir: dir}, nil
}

// Dir returns the store's directory.
func (r *Reader) Dir() string { return r.dir }

// Close ends reading.
func (r *Reader) Close() error { return nil }

// Damage returns a line for each part of the store that was found damaged so far, and what is lost
// with it.
func (r *Reader) Damage() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.damage)
}

// mostDamage bounds the lines of Damage.
const mostDamage = 1000

func (r *Reader) damaged(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.damage) < mostDamage && !slices.Contains(r.damage, line) {
		r.damage = append(r.damage, line)
	}
}

// ServiceUse is what a service used in a range of time.
type ServiceUse struct {
	Name    string
	CPU     time.Duration // 0 if no event measured time on a CPU
	Samples uint64        // of the events that CPU is the sum of, else of all
}

// Services returns the services that have samples between two times, those with the most CPU time
// first.
func (r *Reader) Services(from, to time.Time) ([]ServiceUse, error) {
	from, to = bounded(from), bounded(to)
	type use struct{ cpu, samples, others uint64 }
	sums := map[string]*use{}
	err := r.blocks(from, to, "", nil, func(s *opened, k *block) error {
		cpu := k.cpuKinds()
		var last *use
		thread := lostEntry
		cut := newCut(k, from, to)
		k.untimed = cut.whole
		return k.each(func(uint32) bool { return true }, func(e *entry, times []uint32) {
			if e.thread != thread {
				name := s.text(s.process(e.thread).service)
				thread = e.thread
				if last = sums[name]; last == nil {
					last = &use{}
					sums[name] = last
				}
			}
			weight, n := cut.part(e, times)
			switch {
			case n == 0:
			case cpu[e.kind]:
				last.cpu += weight
				last.samples += n
			default:
				last.others += n
			}
		})
	})
	if err != nil {
		return nil, err
	}
	var out []ServiceUse
	for name, u := range sums {
		if u.samples == 0 {
			u.samples = u.others
		}
		if u.samples > 0 {
			out = append(out, ServiceUse{Name: name, CPU: time.Duration(u.cpu), Samples: u.samples})
		}
	}
	slices.SortFunc(out, func(a, b ServiceUse) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// opened is a segment that is being read.
type opened struct {
	place
	*tables
}

func (s *opened) text(i uint32) string {
	switch {
	case int(i) < len(s.strings):
		return s.strings[i]
	default:
		return lostText
	}
}

var lostProcess = process{command: lostEntry, runtime: 0, service: lostEntry}

func (s *opened) process(thread uint32) *process {
	if int(thread) < len(s.threads) {
		if p := s.threads[thread].process; int(p) < len(s.processes) {
			return &s.processes[p]
		}
	}
	return &lostProcess
}

// blocks visits the blocks of samples that have some between two times, in the order of the days. They
// have the samples of a service, "" for all, and may have others.
func (r *Reader) blocks(from, to time.Time, service string, m *memlimit.Meter, visit func(s *opened, k *block) error) error {
	list, err := days(r.dir)
	if err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	// A block is in the folder of the day on which it began.
	first, last := dayOf(from.Add(-longestBlock)), dayOf(to)
	for _, day := range list {
		if day < first || day > last {
			continue
		}
		segs, _, err := segments(r.dir, day)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // it may have been deleted
			return fmt.Errorf("read the store: %w", err)
		}
		for _, at := range segs {
			if err := r.segment(at, from, to, service, m, visit); err != nil {
				return fmt.Errorf("read the store: %w", err)
			}
		}
	}
	return nil
}

// longestBlock is the longest time of a block that a Reader looks for before the time that it is
// asked for.
const longestBlock = time.Hour

// bounded returns a time whose nanoseconds since 1970 fit in 64 bits.
func bounded(t time.Time) time.Time {
	switch least, most := time.Unix(0, 0), time.Unix(0, 1<<62); {
	case t.Before(least):
		return least
	case t.After(most):
		return most
	}
	return t
}

// begin returns when the first samples between two times begin, in ns since 1970.
func (r *Reader) begin(from, to time.Time) (int64, error) {
	list, err := days(r.dir)
	if err != nil {
		return 0, fmt.Errorf("read the store: %w", err)
	}
	found := int64(math.MaxInt64)
	for _, day := range list {
		if day < dayOf(from.Add(-longestBlock)) || day > dayOf(to) {
			continue
		}
		segs, _, _ := segments(r.dir, day)
		for _, at := range segs {
			r.headers(at, func(h header) {
				if h.to > from.UnixNano() && h.from < to.UnixNano() {
					found = min(found, h.from)
				}
			})
		}
		// A later day has later blocks only.
		if found != math.MaxInt64 {
			break
		}
	}
	return max(found, from.UnixNano()), nil
}

// cut says which part of a block is in a range of time.
type cut struct {
	k        *block
	whole    bool
	from, to uint64 // ns since the block's beginning; to 0: no end
}

func newCut(k *block, from, to time.Time) cut {
	f, t := from.UnixNano(), to.UnixNano()
	c := cut{k: k, whole: f <= k.header.from && t >= k.header.to}
	c.from, c.to = uint64(max(f-k.header.from, 0)), uint64(max(t-k.header.from, 1))
	return c
}

// part returns how much of an entry is in the range. The weight of samples that differ only in their
// time is divided evenly.
func (c *cut) part(e *entry, times []uint32) (weight, n uint64) {
	if c.whole {
		return e.weight, e.n
	}
	if c.k.spanning[e.kind] {
		if weight = profile.Within(e.time, e.weight, c.from, c.to); weight == 0 {
			return 0, 0
		}
		return weight, e.n
	}
	for i, t := range times {
		if at := uint64(t) * uint64(quantum); at >= c.from && at < c.to {
			weight += e.share(i)
			n++
		}
	}
	return weight, n
}

// share returns the weight of the sample i of an entry.
func (e *entry) share(i int) uint64 {
	each, rest := e.weight/e.n, e.weight%e.n
	if uint64(i) < rest {
		each++
	}
	return each
}

// Range returns when the first samples of the store begin and the last ones end; two zero times if
// there are none.
func (r *Reader) Range() (from, to time.Time, err error) {
	list, err := days(r.dir)
	if err != nil {
		return from, to, fmt.Errorf("read the store: %w", err)
	}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	look := func(day string) (any bool) {
		segs, _, _ := segments(r.dir, day)
		for _, at := range segs {
			r.headers(at, func(h header) { first, last, any = min(first, h.from), max(last, h.to), true })
		}
		return any
	}
	for i := 0; i < len(list) && !look(list[i]); i++ {
	}
	for i := len(list) - 1; i >= 0 && !look(list[i]); i-- {
	}
	if first >= last {
		return from, to, nil
	}
	return time.Unix(0, first), time.Unix(0, last), nil
}

// headers visits the headers of a segment's blocks of samples.
func (r *Reader) headers(at place, visit func(h header)) {
	f, err := os.Open(at.path(r.dir, fileOfSamples))
	if err != nil {
		return // whoever reads the samples reports it
	}
	defer f.Close()
	_, _ = scan(f, kindSamples, 0, func(h header, _ int64, _ []byte) error {
		visit(h)
		return nil
	}, func(int64, int64, *header, error) {})
}
