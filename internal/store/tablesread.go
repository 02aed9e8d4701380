package store

import (
	"errors"

	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/profile"
)

// tables are the tables of a segment as far as they were read. Entries whose block is damaged are
// there, but have no content: see lostEntry.
type tables struct {
	fresh
	gaps bool
}

// lostEntry is in tables the name of a function, or the frame of a node, that is lost.
const lostEntry = ^uint32(0)

// newTables returns the tables of an empty segment, which have only the root of the trie.
func newTables() *tables { return &tables{fresh: fresh{nodes: make([]profile.Node, 1)}} }

func (t *tables) counts() counts {
	return counts{uint32(len(t.strings)), uint32(len(t.fns)), uint32(len(t.frames)), uint32(len(t.nodes)), uint32(len(t.processes)), uint32(len(t.threads))}
}

var errOrder = errors.New("it repeats what an earlier block has")

// add appends the content of a block of names, nodes or processes. What is missing before it becomes
// entries without content, if m permits that many.
func (t *tables) add(file int, version byte, raw []byte, m *memlimit.Meter) error {
	var more fresh
	var first counts
	var err error
	switch {
	case file == fileOfProcesses:
		first, err = more.decodeProcesses(raw)
	case file == fileOfNames && version == 1:
		first, err = more.decodeNames1(raw)
	case file == fileOfNames:
		first, err = more.decodeNames(raw, t.strings)
	case version == 1:
		first, err = more.decodeNodes1(raw)
	default:
		first, err = more.decodeNodes(raw)
	}
	if err != nil {
		return err
	}
	switch file {
	case fileOfNames:
		err = errors.Join(
			join(t, &t.strings, more.strings, first.strings, lostText, m),
			join(t, &t.fns, more.fns, first.fns, fn{name: lostEntry}, m),
			join(t, &t.frames, more.frames, first.frames, frame{fn: lostEntry}, m))
	case fileOfNodes:
		err = join(t, &t.nodes, more.nodes, first.nodes, profile.Node{Frame: lostEntry}, m)
	case fileOfProcesses:
		err = errors.Join(
			join(t, &t.processes, more.processes, first.processes, process{command: lostEntry, runtime: lostEntry, service: lostEntry}, m),
			join(t, &t.threads, more.threads, first.threads, thread{process: lostEntry, name: lostEntry, osName: lostEntry, kind: lostEntry}, m))
	}
	return err
}

// lostText stands for texts that are lost.
const lostText = "[lost: a block of the store is damaged]"

// mostLost is how many entries a gap may have: more than fit in the largest block.
const mostLost = 1 << 24

func join[T any](t *tables, list *[]T, more []T, first uint32, lost T, m *memlimit.Meter) error {
	if int(first) < len(*list) {
		if len(more) == 0 {
			return nil
		}
		return errOrder
	}
	gap := int(first) - len(*list)
	if gap > mostLost {
		return errCut
	}
	if gap > 0 {
		t.gaps = true
		for range gap {
			if *list = memlimit.Append(m, *list, lost); m.Err() != nil {
				return m.Err()
			}
		}
	}
	*list = append(*list, more...)
	return nil
}
