package profile

import (
	"cmp"
	"slices"
)

// Keep is how a Builder and its Profile keep samples.
type Keep uint8

const (
	// KeepSamples keeps each sample in Profile.Samples.
	KeepSamples Keep = iota
	// KeepPacked keeps each sample in some ten bytes: only Each visits them.
	KeepPacked
	// KeepTracks is KeepPacked with the samples of each track kept separately.
	KeepTracks
	// KeepSums keeps only sums of samples, and packs those of which it is not certain yet what they
	// count: see Summed.
	KeepSums
	// KeepWeights is KeepSums with samples of different weight apart: see Weighed.
	KeepWeights
)

// Keep sets how samples are kept. It is called before the first Add.
func (b *Builder) Keep(k Keep) { b.keep, b.tally.apart = k, k == KeepWeights }

// Tentative announces, before the first Add, that times and weights of samples may change when all
// are there: until then it is not known whether a sample lies in a range of time.
func (b *Builder) Tentative() { b.tentative = true }

// put keeps a sample that was accepted.
func (b *Builder) put(s Sample) {
	b.timed = b.timed || s.Time != 0
	b.latest = max(b.latest, s.Time)
	switch {
	case b.keep >= KeepSums && s.State < StateSleeping && (b.early == nil || b.early.whole(&s, b.tentative)):
		b.tally.add(&s, s.Weight, 1)
	case b.keep == KeepPacked:
		b.log.add(s)
	default:
		t := Track{s.Thread, s.Event}
		l := b.track
		if l == nil || t != b.trackOf {
			if l = b.tracks[t]; l == nil {
				if b.tracks == nil {
					b.tracks = make(map[Track]*sampleLog)
				}
				l = b.room.log()
				b.tracks[t] = l
				b.logs = append(b.logs, l)
			}
			b.track, b.trackOf = l, t
		}
		l.add(s)
	}
}

// whole reports whether a sample that was accepted certainly belongs to the time that is asked for
// as it is, whatever its weight counts.
func (e *early) whole(s *Sample, tentative bool) bool {
	if e.from == 0 && e.to == 0 {
		return true
	}
	if tentative || s.Time < e.from || e.to > 0 && s.Time >= e.to {
		return false
	}
	return s.State < StateRunnable || s.Time-min(s.Time, s.Weight) >= e.from
}

// finish gives the profile the samples that are packed or summed up.
func (b *Builder) finish() {
	p := b.p
	p.timed, p.latest, p.room = b.timed, b.latest, b.room
	logs := append([]*sampleLog{&b.log}, b.logs...)
	b.tracks, b.track, b.logs = nil, nil, nil
	for _, l := range logs {
		if l.n == 0 {
			continue
		}
		kept := *l
		kept.trim()
		*l = sampleLog{n: l.n}
		if kept.pieces {
			kept = *kept.joined()
		}
		p.packed = append(p.packed, &kept)
	}
	b.tally.sums.add(b.summed)
	b.summed = nil
	b.tally.flush()
	p.sums, b.tally = b.tally.sums, tally{added: b.tally.added}
}

// change calls f for each sample, which may change it, and keeps those for which f returns true.
func (l *sampleLog) change(f func(s *Sample) bool) *sampleLog {
	out := l.room.log()
	l.each(func(s *Sample) {
		if f(s) {
			out.add(*s)
		}
	})
	out.trim()
	return out
}

// ordered returns the log in the order of time; samples of the same time keep their order.
func (l *sampleLog) ordered() *sampleLog {
	if !l.late {
		return l
	}
	in := sorter{room: l.room, compare: func(a, b *Sample) int { return cmp.Compare(a.Time, b.Time) }}
	l.each(func(s *Sample) { in.add(*s) })
	out := l.room.log()
	in.each(func(s *Sample) { out.add(*s) })
	out.trim()
	return out
}

// Each visits all samples, in the order in which they were added unless the profile keeps tracks
// apart. Samples of which it has only the sum are visited as one without a time that has the weight
// of all n. A visit may change what is in Samples, and nothing else.
func (p *Profile) Each(visit func(s *Sample, n uint64)) {
	p.Singly(func(s *Sample) { visit(s, 1) })
	var s Sample
	p.sums.each(func(u sum) {
		s = u.sample()
		visit(&s, u.n)
	})
}

// Singly visits the samples that the profile does not have only as sums.
func (p *Profile) Singly(visit func(s *Sample)) {
	for i := range p.Samples {
		visit(&p.Samples[i])
	}
	for _, l := range p.packed {
		l.each(visit)
	}
}

// Change calls f for all samples, which may change them. If f changes the weight of several samples
// it must change the weight of their sum in the same way.
func (p *Profile) Change(f func(s *Sample)) {
	for i := range p.Samples {
		f(&p.Samples[i])
	}
	p.latest = 0
	for i, l := range p.packed {
		p.packed[i] = l.change(func(s *Sample) bool {
			f(s)
			p.latest = max(p.latest, s.Time)
			return true
		})
	}
	p.sums = p.sums.change(func(s *Sample) bool {
		f(s)
		return true
	})
}

// change is sampleLog.change for sums.
func (u *sums) change(f func(s *Sample) bool) sums {
	t := tally{sums: sums{apart: u.apart}}
	var s Sample
	u.each(func(v sum) {
		if s = v.sample(); f(&s) {
			t.add(&s, s.Weight, v.n)
		}
	})
	t.flush()
	return t.sums
}

// SortByTime sorts samples by time; those of the same time keep their order.
func (p *Profile) SortByTime() {
	slices.SortStableFunc(p.Samples, func(a, b Sample) int { return cmp.Compare(a.Time, b.Time) })
	for i, l := range p.packed {
		p.packed[i] = l.ordered()
	}
}

// Latest returns the time of the last sample, as far as the profile has times.
func (p *Profile) Latest() uint64 {
	latest := p.latest
	for i := range p.Samples {
		latest = max(latest, p.Samples[i].Time)
	}
	return latest
}

// Summed returns p with only sums of its samples. It shares everything else with p, which stays as
// it is.
func Summed(p *Profile) *Profile { return summed(p, false) }

// Weighed is Summed with a sum for each weight that samples have, so that the weight of each is
// known.
func Weighed(p *Profile) *Profile { return summed(p, true) }

func summed(p *Profile, apart bool) *Profile {
	if len(p.Samples) == 0 && len(p.packed) == 0 {
		return p
	}
	out := *p
	t := tally{sums: sums{apart: apart}}
	if p.sums.apart == apart {
		t.sums = p.sums
	} else {
		p.sums.each(func(u sum) {
			s := u.sample()
			t.add(&s, u.weight, u.n)
		})
	}
	for i := range p.Samples {
		t.add(&p.Samples[i], p.Samples[i].Weight, 1)
	}
	for _, l := range p.packed {
		l.each(func(s *Sample) { t.add(s, s.Weight, 1) })
	}
	t.flush()
	out.Samples, out.packed, out.sums = nil, nil, t.sums
	return &out
}

// AddSum adds n samples that differ only in time, with the weight of all of them, to a Builder that
// keeps sums. Most come in order, and no two are the same.
func (b *Builder) AddSum(s Sample, n uint64) {
	b.timed = b.timed || s.Time != 0
	u := sumOf(&s)
	u.n = n
	if b.summed = append(b.summed, u); len(b.summed) >= max(leastTallied, b.tally.sums.n/2) {
		b.tally.sums.add(b.summed)
		b.summed = b.summed[:0]
	}
	b.tally.added += n
}

// EqualWeights returns p with samples that weigh 1 each.
func EqualWeights(p *Profile) *Profile {
	out := *p
	out.Samples = slices.Clone(p.Samples)
	for i := range out.Samples {
		out.Samples[i].Weight = 1
	}
	out.packed = nil
	for _, l := range p.packed {
		out.packed = append(out.packed, l.change(func(s *Sample) bool {
			s.Weight = 1
			return true
		}))
	}
	t := tally{sums: sums{apart: p.sums.apart}}
	p.sums.each(func(u sum) {
		s := u.sample()
		t.add(&s, u.n, u.n)
	})
	t.flush()
	out.sums = t.sums
	return &out
}
