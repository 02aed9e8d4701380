package live

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
)

// least is the size below which dropping old stacks is not worth it.
const least = 1 << 16

// compact drops names that only past slots used.
func (m *Model) compact() {
	manyFaces := len(m.faces) > max(m.limits.faces, min(2*m.chosen, 3*m.limits.faces))
	if manyFaces || m.trie.Len() > max(min(least, m.limits.nodes/4), 2*m.packed) {
		m.repack(manyFaces)
	}
	if len(m.threads) > m.limits.threads {
		m.dropThreads()
	}
}

// repack rebuilds the tables of names: only stacks of the ring and, with dropFaces, methods of the
// ring and those with the most samples since the start.
func (m *Model) repack(dropFaces bool) {
	old := m.names
	keep := old.faces
	if dropFaces {
		keep = nil
	}
	used := make([]bool, len(old.faces))
	seen := make([]bool, old.trie.Len())
	for i := range m.ring {
		for e := range m.ring[i].stacks {
			for n := e.node; n != profile.RootNode && !seen[n]; n = old.trie.At(n).Parent {
				seen[n] = true
				used[old.trie.At(n).Frame] = true
			}
		}
		for at := range m.ring[i].extra {
			used[at] = true
		}
	}
	m.names = newNames()
	m.chosen = old.chosen
	to := make([]uint32, len(old.faces)) // 0: dropped
	enter := func(at uint32) {
		f := old.faces[at]
		to[at] = m.faceOf(old.methods[f.method], f.kind)
	}
	for at := range keep {
		enter(uint32(at))
	}
	if dropFaces {
		m.keepHottest(used, enter)
		m.chosen = len(m.faces)
	}
	since := make([]selfTotal, len(m.faces))
	for at, c := range m.since {
		if to[at] == 0 && at != 0 {
			m.forgotten.Add(c.self)
			continue
		}
		since[to[at]].add(c)
	}
	m.since = since
	node := make([]uint32, old.trie.Len())
	var path []uint32
	for i := range m.ring {
		s := &m.ring[i]
		stacks := make(map[entry]profile.Count, len(s.stacks))
		for e, c := range s.stacks {
			path = path[:0]
			n := e.node
			for ; n != profile.RootNode && node[n] == 0; n = old.trie.At(n).Parent {
				path = append(path, n)
			}
			at := node[n]
			for j := len(path) - 1; j >= 0; j-- {
				at = m.trie.Child(at, to[old.trie.At(path[j]).Frame])
				node[path[j]] = at
			}
			stacks[entry{e.thread, at, e.state}] = c
		}
		extra := make(map[uint32]selfTotal, len(s.extra))
		for at, c := range s.extra {
			extra[to[at]] = c
		}
		s.stacks, s.extra, s.byFace, s.dirty = stacks, extra, nil, true
	}
	m.packed = m.trie.Len()
	m.of.frames, m.of.nodes = nil, nil
	m.scratch = folder{}
}

// keepHottest enters the faces that are used, and of the others those with most samples since the
// start, up to half of the limit.
func (m *Model) keepHottest(used []bool, enter func(uint32)) {
	var rest []uint32
	kept := 0
	for at, u := range used {
		if u {
			enter(uint32(at))
			kept++
		} else if at < len(m.since) && m.since[at].total.Samples > 0 {
			rest = append(rest, uint32(at))
		}
	}
	slices.SortFunc(rest, func(a, b uint32) int {
		x, y := &m.since[a], &m.since[b]
		return cmp.Or(cmp.Compare(y.self.Weight, x.self.Weight), cmp.Compare(y.total.Weight, x.total.Weight), cmp.Compare(a, b))
	})
	for _, at := range rest[:min(len(rest), max(m.limits.faces/2-kept, 0))] {
		enter(at)
	}
}

// dropThreads drops threads that were not seen in any slot of the ring.
func (m *Model) dropThreads() {
	to := make([]uint32, len(m.threads)) // plus 1
	var threads []thread
	for i := range m.ring {
		for th := range m.ring[i].thread {
			if to[th] == 0 {
				threads = append(threads, m.threads[th])
				to[th] = uint32(len(threads))
			}
		}
	}
	for i := range m.ring {
		s := &m.ring[i]
		stacks := make(map[entry]profile.Count, len(s.stacks))
		for e, c := range s.stacks {
			stacks[entry{to[e.thread] - 1, e.node, e.state}] = c
		}
		seen := make(map[uint32]profile.Count, len(s.thread))
		for th, c := range s.thread {
			seen[to[th]-1] = c
		}
		s.stacks, s.thread = stacks, seen
	}
	m.threads = threads
	for i, id := range m.of.threads {
		if id != 0 {
			m.of.threads[i] = to[id-1]
		}
	}
	for key, id := range m.tids {
		if to[id] == 0 {
			delete(m.tids, key)
		} else {
			m.tids[key] = to[id] - 1
		}
	}
	// Many threads are alive at once: check again when there are twice as many.
	m.limits.threads = max(m.limits.threads, 2*len(threads))
}
