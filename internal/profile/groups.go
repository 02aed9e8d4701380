package profile

import (
	"cmp"
	"slices"
)

// Group is a set of samples of a profile that differ only in time and weight.
type Group struct {
	Sample      // what they have in common: no time, and the weight of all of them
	Samples int // how many there are
	Size    int // the sum of measure over their weights
}

// Groups are the single samples of a profile by group. Their number depends on the profile's
// stacks, by thread and by what the threads did there, not on how many samples there are.
type Groups struct {
	p      *Profile
	list   []Group
	table  []uint32 // of list, open addressing: index+1, 0 is free
	recent []met    // by node, some of the latest lookups
}

// met is a group that was looked up.
type met struct {
	at, kind uint64 // as in sum
	group    uint32 // index+1; 0: none
}

// recently is how many lookups are remembered, few enough for the caches of a CPU. Samples mostly
// come thread by thread.
const recently = 1 << 16

// GroupsOf groups the samples of p, and adds up measure over their weights.
func GroupsOf(p *Profile, measure func(weight uint64) int) *Groups {
	g := &Groups{p: p, table: make([]uint32, 1<<10), recent: make([]met, recently)}
	p.Each(func(s *Sample, _ uint64) {
		of := &g.list[g.find(s)]
		of.Samples++
		of.Weight += s.Weight
		of.Size += measure(s.Weight)
	})
	return g
}

// find returns the index of a sample's group, and adds the group if it is new.
func (g *Groups) find(s *Sample) uint32 {
	u := sumOf(s)
	m := &g.recent[s.Node%recently]
	if m.group != 0 && m.at == u.at && m.kind == u.kind {
		return m.group - 1
	}
	place := g.place(&u)
	if *place == 0 {
		if 3*len(g.list) >= 2*len(g.table) {
			g.enter(make([]uint32, 2*len(g.table)))
			place = g.place(&u)
		}
		one := *s
		one.Time, one.Weight = 0, 0
		g.list = append(g.list, Group{Sample: one})
		*place = uint32(len(g.list))
	}
	*m = met{u.at, u.kind, *place}
	return *place - 1
}

// place returns where in the table a group is, or would be.
func (g *Groups) place(u *sum) *uint32 {
	h := (u.at ^ u.kind*0xD6E8FEB86659FD93) * 0x9E3779B97F4A7C15
	h ^= h >> 32
	mask := uint64(len(g.table) - 1)
	for ; ; h++ {
		e := &g.table[h&mask]
		if *e == 0 {
			return e
		}
		if of := sumOf(&g.list[*e-1].Sample); of.at == u.at && of.kind == u.kind {
			return e
		}
	}
}

// enter replaces the table by a larger one and enters all groups in it.
func (g *Groups) enter(table []uint32) {
	g.table = table
	for i := range g.list {
		u := sumOf(&g.list[i].Sample)
		*g.place(&u) = uint32(i + 1)
	}
}

// Sort sorts the groups; compare must not consider two of them equal.
func (g *Groups) Sort(compare func(a, b *Group) int) {
	order := make([]uint32, len(g.list))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return compare(&g.list[a], &g.list[b]) })
	sorted := make([]Group, len(order))
	for i, at := range order {
		sorted[i] = g.list[at]
	}
	g.list = sorted
	clear(g.table)
	clear(g.recent)
	g.enter(g.table)
}

// List returns the groups, as they were sorted. They may not be changed.
func (g *Groups) List() []Group { return g.list }

// atOnce is how many samples are sorted at once.
const atOnce = 1 << 18

// timed is what distinguishes the samples of a group.
type timed struct{ time, weight uint64 }

// Each visits the groups in their order, with a function that visits the samples of the group in
// the order of time, as often as it is called; those of the same time keep their order. Each may be
// called once.
func (g *Groups) Each(visit func(of *Group, each func(func(time, weight uint64)))) {
	// Groups that follow each other are read together.
	type bucket struct {
		first, end int // of the list
		samples    int
		log        *sampleLog
	}
	var buckets []bucket
	of := make([]uint32, len(g.list))
	for i := range g.list {
		n := g.list[i].Samples
		last := len(buckets) - 1
		if last < 0 || buckets[last].samples+n > atOnce {
			buckets = append(buckets, bucket{first: i, log: g.p.room.log()})
			last++
		}
		b := &buckets[last]
		b.end, b.samples = i+1, b.samples+n
		of[i] = uint32(last)
	}
	g.p.Each(func(s *Sample, _ uint64) {
		i := g.find(s)
		buckets[of[i]].log.add(Sample{Time: s.Time, Weight: s.Weight, Node: i})
	})
	g.table, g.recent = nil, nil
	var room []timed
	for i := range buckets {
		b := buckets[i]
		buckets[i].log = nil
		if b.end-b.first == 1 && b.samples > atOnce {
			sorted := b.log.ordered()
			visit(&g.list[b.first], func(f func(time, weight uint64)) {
				sorted.each(func(s *Sample) { f(s.Time, s.Weight) })
			})
			continue
		}
		room = slices.Grow(room[:0], b.samples)[:b.samples]
		next := make([]int, b.end-b.first) // where the next sample of each group goes
		for i := 1; i < len(next); i++ {
			next[i] = next[i-1] + g.list[b.first+i-1].Samples
		}
		b.log.each(func(s *Sample) {
			at := &next[int(s.Node)-b.first]
			room[*at] = timed{s.Time, s.Weight}
			*at++
		})
		end := 0
		for i := b.first; i < b.end; i++ {
			group := &g.list[i]
			list := room[end:][:group.Samples]
			end += group.Samples
			if byTime := func(a, b timed) int { return cmp.Compare(a.time, b.time) }; !slices.IsSortedFunc(list, byTime) {
				slices.SortStableFunc(list, byTime)
			}
			visit(group, func(f func(time, weight uint64)) {
				for _, t := range list {
					f(t.time, t.weight)
				}
			})
		}
	}
}
