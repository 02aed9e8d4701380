package profile

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/candid-profiler/candid/internal/walk"
)

// sums are sums of samples: those that differ only in time and weight are one. However long a
// recording is, their number depends on its stacks, by thread and by what the threads did there.
// They are kept in order, in some eight bytes each.
type sums struct {
	chunks  [][]byte
	n       int // sums
	samples uint64
	apart   bool // samples of different weight have different sums
}

// sum is the sum of some samples.
type sum struct {
	at     uint64 // node and thread
	kind   uint64 // everything else
	n      uint64
	weight uint64
}

func sumOf(s *Sample) sum {
	return sum{
		at:     uint64(s.Node)<<32 | uint64(s.Thread),
		kind:   uint64(s.Event)<<40 | uint64(s.Syscall)<<24 | uint64(s.State)<<16 | uint64(s.End)<<8 | uint64(s.Flags),
		n:      1,
		weight: s.Weight,
	}
}

// sample returns one sample with the weight of all.
func (s *sum) sample() Sample {
	return Sample{
		Weight: s.weight, Node: uint32(s.at >> 32), Thread: uint32(s.at),
		Event: uint16(s.kind >> 40), Syscall: uint16(s.kind >> 24), State: State(s.kind >> 16), End: walk.End(s.kind >> 8), Flags: SampleFlags(s.kind),
	}
}

func (s *sum) compare(o *sum, apart bool) int {
	switch {
	case s.at != o.at:
		return cmp.Compare(s.at, o.at)
	case s.kind != o.kind || !apart:
		return cmp.Compare(s.kind, o.kind)
	}
	return cmp.Compare(s.each(), o.each())
}

// each returns what one of them weighs, if all weigh the same.
func (s *sum) each() uint64 {
	if s.n == 1 {
		return s.weight
	}
	return s.weight / s.n
}

// Fields of a sum that are the same as in the one before. The rest of the byte is the number of
// samples.
const (
	sameSumThread = 1 << iota
	sameSumKind
	sumFlags = iota // the number of these flags
)

// maxSummed is the most bytes that a sum takes.
const maxSummed = 5 * binary.MaxVarintLen64

// add merges more sums, which may be in any order.
func (u *sums) add(more []sum) {
	slices.SortFunc(more, func(a, b sum) int { return a.compare(&b, u.apart) })
	w := sumWriter{sums: sums{apart: u.apart}}
	u.each(func(s sum) {
		for len(more) > 0 && more[0].compare(&s, u.apart) < 0 {
			w.add(&more[0])
			more = more[1:]
		}
		w.add(&s)
	})
	for i := range more {
		w.add(&more[i])
	}
	w.write()
	*u = w.sums
}

// each visits all sums in their order.
func (u *sums) each(visit func(sum)) {
	var s sum
	for _, b := range u.chunks {
		number := func() uint64 {
			v, n := binary.Uvarint(b)
			b = b[n:]
			return v
		}
		for len(b) > 0 {
			head := number()
			node, thread := s.at>>32+number(), s.at&(1<<32-1)
			if head&sameSumThread == 0 {
				thread = number()
			}
			if head&sameSumKind == 0 {
				s.kind = number()
			}
			s.at, s.n, s.weight = node<<32|thread, head>>sumFlags, number()
			visit(s)
		}
	}
}

// sumWriter writes sums that come in their order.
type sumWriter struct {
	sums
	before  sum // what was written last
	pending sum // it may still grow
}

func (w *sumWriter) add(s *sum) {
	w.samples += s.n
	if w.pending.n > 0 && w.pending.compare(s, w.apart) == 0 {
		w.pending.n += s.n
		w.pending.weight += s.weight
		return
	}
	w.write()
	w.pending = *s
}

func (w *sumWriter) write() {
	s := &w.pending
	if s.n == 0 {
		return
	}
	at := len(w.chunks) - 1
	if at < 0 || cap(w.chunks[at])-len(w.chunks[at]) < maxSummed {
		w.chunks = append(w.chunks, make([]byte, 0, logChunk))
		at++
	}
	w.n++
	head := s.n << sumFlags
	if uint32(s.at) == uint32(w.before.at) {
		head |= sameSumThread
	}
	if s.kind == w.before.kind {
		head |= sameSumKind
	}
	b := binary.AppendUvarint(w.chunks[at], head)
	b = binary.AppendUvarint(b, s.at>>32-w.before.at>>32)
	if head&sameSumThread == 0 {
		b = binary.AppendUvarint(b, uint64(uint32(s.at)))
	}
	if head&sameSumKind == 0 {
		b = binary.AppendUvarint(b, s.kind)
	}
	w.chunks[at] = binary.AppendUvarint(b, s.weight)
	w.before = *s
}

// SumUp keeps only sums of the samples that were added so far, because the caller has each of them
// elsewhere: they count in the profile, but are not among its Samples. Samples of threads that
// sleep stay, because several may turn out to be one wait. Observations are dropped.
func (b *Builder) SumUp() {
	summed := make([]sum, 0, b.log.n)
	b.log.each(func(s *Sample) {
		if s.State >= StateSleeping {
			b.slept.add(*s)
		} else {
			summed = append(summed, sumOf(s))
		}
	})
	b.log, b.given = sampleLog{}, -1
	b.sums.add(summed)
	b.gone += len(b.p.Observations)
	b.p.Observations = nil
}

// SampleCount returns how many samples the profile has, however it keeps them.
func (p *Profile) SampleCount() uint64 {
	n := uint64(len(p.Samples)) + p.sums.samples
	for _, l := range p.packed {
		n += uint64(l.n)
	}
	return n
}

// EventSamples returns how many samples each event has.
func (p *Profile) EventSamples() []uint64 {
	counts := make([]uint64, len(p.Events))
	p.Each(func(s *Sample, n uint64) { counts[s.Event] += n })
	return counts
}

// EventWeights returns the total weight of the samples of each event.
func (p *Profile) EventWeights() []uint64 {
	weights := make([]uint64, len(p.Events))
	p.Each(func(s *Sample, _ uint64) { weights[s.Event] += s.Weight })
	return weights
}

// tally sums up samples as they are added. Most belong to a sum that exists, which a table finds.
// The table is added to the sums when it has become large compared with them.
type tally struct {
	sums
	table []sum // open addressing; n 0: free
	used  int
	added uint64 // samples
}

// leastTallied is the least number of sums in a table before they are added.
const leastTallied = 1 << 17

// add adds n samples that differ only in time and weight.
func (t *tally) add(s *Sample, weight, n uint64) {
	if 3*t.used >= 2*len(t.table) {
		if t.used >= max(leastTallied, t.sums.n/2) {
			t.empty()
		} else {
			t.grow()
		}
	}
	u := sumOf(s)
	u.weight, u.n = weight, n
	e := t.place(&u)
	if e.n == 0 {
		t.used++
		e.at, e.kind = u.at, u.kind
	}
	e.n += n
	e.weight += weight
	t.added += n
}

// place returns where a sum is, or would be.
func (t *tally) place(u *sum) *sum {
	h := u.at ^ u.kind*0xD6E8FEB86659FD93
	if t.apart {
		h ^= u.each() * 0xA0761D6478BD642F
	}
	h *= 0x9E3779B97F4A7C15
	h ^= h >> 32
	mask := uint64(len(t.table) - 1)
	for ; ; h++ {
		if e := &t.table[h&mask]; e.n == 0 || e.at == u.at && e.kind == u.kind && (!t.apart || e.each() == u.each()) {
			return e
		}
	}
}

func (t *tally) grow() {
	old := t.table
	t.table = make([]sum, max(1<<10, 2*len(old)))
	for i := range old {
		if old[i].n > 0 {
			*t.place(&old[i]) = old[i]
		}
	}
}

// empty adds what is in the table to the sums.
func (t *tally) empty() {
	list := t.table[:0]
	for i := range t.table {
		if t.table[i].n > 0 {
			list = append(list, t.table[i])
		}
	}
	t.sums.add(list)
	clear(t.table)
	t.used = 0
}

// flush is empty when nothing more follows.
func (t *tally) flush() {
	t.empty()
	t.table = nil
	t.sums.trim()
}

// trim frees the space behind the last of the sums.
func (u *sums) trim() { trim(u.chunks) }

func trim(chunks [][]byte) {
	if n := len(chunks); n > 0 {
		chunks[n-1] = slices.Clip(slices.Clone(chunks[n-1]))
	}
}
