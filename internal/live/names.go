package live

import (
	"strings"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// names are the model's own tables of methods and stacks, which outlive those of the recording.
type names struct {
	methods  []Method
	byMethod map[Method]uint32
	faces    []face
	byFace   map[face]uint32
	trie     *profile.Trie        // stacks of faces
	waiters  []attribution.Waiter // by node, for those that were looked up
	packed   int                  // size of trie after the last repack
	chosen   int                  // size of faces after they were last reduced
}

// tooMany stands for all methods that are added when there is no room for names.
var tooMany = Method{Name: "[more names than are kept]"}

func newNames() names {
	n := names{byMethod: make(map[Method]uint32), byFace: make(map[face]uint32), trie: profile.NewTrie()}
	n.faceOf(tooMany, walk.KindUnknown) // face 0
	return n
}

func (n *names) faceOf(name Method, kind walk.Kind) uint32 {
	id, ok := n.byMethod[name]
	if !ok {
		id = uint32(len(n.methods))
		n.methods = append(n.methods, name)
		n.byMethod[name] = id
	}
	f := face{id, kind}
	at, ok := n.byFace[f]
	if !ok {
		at = uint32(len(n.faces))
		n.faces = append(n.faces, f)
		n.byFace[f] = at
	}
	return at
}

// translation maps a Builder's indices to the model's, plus 1; 0 is unknown.
type translation struct {
	b                      *profile.Builder
	frames, nodes, threads []uint32
	path                   []uint32
}

// follow resets the translation when the recording has restarted its tables.
func (m *Model) follow(b *profile.Builder) {
	if m.of.b == b {
		return
	}
	m.of = translation{b: b}
	for i := range m.threads {
		m.threads[i].bound = false
	}
}

// room makes a table long enough for index i.
func room(table []uint32, i, size int) []uint32 {
	if i < len(table) {
		return table
	}
	return append(table, make([]uint32, max(size, i+1)-len(table))...)
}

// face returns the face of a Builder's frame.
func (m *Model) face(b *profile.Builder, frame uint32) uint32 {
	m.of.frames = room(m.of.frames, int(frame), len(b.Frames()))
	if at := m.of.frames[frame]; at != 0 {
		return at - 1
	}
	f := &b.Frames()[frame]
	fn := &b.Funcs()[f.Func]
	name, kind := Method{m.cut(fn.Name), m.cut(fn.Module)}, f.Kind
	if kind >= walk.NumKinds {
		kind = walk.KindUnknown
	}
	at := uint32(0)
	if _, known := m.byMethod[name]; known || len(m.faces) < 4*m.limits.faces {
		at = m.faceOf(name, kind)
	}
	m.of.frames[frame] = at + 1
	return at
}

// cut bounds how much of a name a target can make candid keep.
func (m *Model) cut(s string) string {
	if len(s) <= m.limits.name {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-m.limits.name:], "")
}

// node returns the model's stack for a Builder's; false if there is no room.
func (m *Model) node(b *profile.Builder, node uint32) (uint32, bool) {
	m.of.nodes = room(m.of.nodes, int(node), b.Nodes())
	path, at := m.of.path[:0], uint32(profile.RootNode)
	for n := node; n != profile.RootNode; n = b.At(n).Parent {
		if known := m.of.nodes[n]; known != 0 {
			at = known - 1
			break
		}
		path = append(path, n)
	}
	m.of.path = path
	if len(path) > 0 && m.trie.Len()+len(path) > m.limits.nodes {
		return 0, false
	}
	for i := len(path) - 1; i >= 0; i-- {
		if frame := b.At(path[i]).Frame; b.Frames()[frame].Flags&walk.Skid == 0 {
			at = m.trie.Child(at, m.face(b, frame))
		}
		m.of.nodes[path[i]] = at + 1
	}
	return at, true
}

// thread returns the model's thread for a Builder's.
func (m *Model) thread(b *profile.Builder, i uint32) uint32 {
	m.of.threads = room(m.of.threads, int(i), len(b.Threads()))
	if id := m.of.threads[i]; id != 0 {
		return id - 1
	}
	t := &b.Threads()[i]
	key := [2]int{t.PID, t.TID}
	// Two threads of one Builder stay two, even if they have the same number.
	id, ok := m.tids[key]
	if !ok || m.threads[id].bound {
		id = uint32(len(m.threads))
		m.threads = append(m.threads, thread{pid: t.PID, tid: t.TID})
		m.tids[key] = id
	}
	m.threads[id].bound, m.threads[id].name, m.threads[id].kind = true, m.cut(t.Name), t.Kind
	m.of.threads[i] = id + 1
	return id
}
