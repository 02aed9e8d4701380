package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/candid-profiler/candid/internal/profile"
)

// maxTables is how many bytes of memory a segment's tables take, about. A segment that exceeds it is followed by
// another one, so a Writer takes no more on a day on which ever new programs run. What both segments have is on disk
// twice: a few percent of what it takes to fill one.
const maxTables = 24 << 20

// About how many bytes of memory an entry takes with its place in the table that it is found by.
const (
	nodeBytes   = 12
	frameBytes  = 28
	fnBytes     = 52
	stringBytes = 48 // without the text
)

// segment is the segment of a day that a Writer appends to.
type segment struct {
	place
	files [filesOfSegment]*os.File
	sizes [filesOfSegment]int64
	on    counts // on disk
	fresh fresh

	strings map[string]uint32
	fns     map[fn]uint32
	frames  map[frame]uint32
	bytes   int // of strings
	trie    *profile.Trie

	// Processes and threads are found again only if they were there a short time ago: a machine may
	// start millions in a day.
	processes recent[process]
	threads   recent[thread]
	serviceOf map[uint32]uint32 // by thread that was there lately: the string of its service
}

// openSegment opens the files of a segment to append to them. It cuts what a crash left unfinished.
// usable is false if its tables cannot be continued: because they are damaged, or lack what a block
// of samples refers to.
func openSegment(dir string, at place, say func(string)) (s *segment, usable bool, err error) {
	if err := os.MkdirAll(filepath.Join(dir, at.day), 0o750); err != nil {
		return nil, false, err
	}
	s = &segment{place: at, strings: map[string]uint32{}, fns: map[fn]uint32{}, frames: map[frame]uint32{}, trie: profile.NewTrie()}
	defer func() {
		if err != nil {
			s.close()
			s = nil
		}
	}()
	usable = true
	t := newTables()
	for i := range s.files {
		path := at.path(dir, i)
		if s.files[i], err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640); err != nil {
			return s, false, err
		}
		fi, err := s.files[i].Stat()
		if err != nil {
			return s, false, err
		}
		needs := counts{}
		var buf []byte
		var u unpacked
		whole, err := scan(s.files[i], fileKinds[i], 0, func(h header, _ int64, body []byte) (err error) {
			if i != fileOfSamples {
				if buf, err = h.unpack(body, buf); err != nil {
					return err
				}
				return t.add(i, h.version, buf, nil)
			}
			if u, err = h.unpackParts(body, u, nobody); err != nil {
				return err
			}
			k, err := parseBlock(h, u)
			if err == nil {
				needs = needs.most(k.needs)
			}
			return err
		}, func(from, to int64, _ *header, why error) {
			if to < fi.Size() && i != fileOfSamples {
				usable = false
			}
		})
		if err != nil {
			return s, false, err
		}
		if whole < fi.Size() {
			say(fmt.Sprintf("%s: the last %d bytes are no whole block: they are cut off", path, fi.Size()-whole))
			if err := s.files[i].Truncate(whole); err != nil {
				return s, false, err
			}
		}
		s.sizes[i] = whole
		if t.gaps || i == fileOfSamples && !needs.within(t.counts()) {
			usable = false
		}
	}
	if !usable {
		return s, false, nil
	}
	return s, s.load(t), nil
}

// load takes over tables that were read. It reports whether they can be continued.
func (s *segment) load(t *tables) bool {
	s.on = t.counts()
	for i, text := range t.strings {
		s.strings[text] = uint32(i)
		s.bytes += len(text)
	}
	for i, f := range t.fns {
		s.fns[f] = uint32(i)
	}
	for i, f := range t.frames {
		s.frames[f] = uint32(i)
	}
	for i := 1; i < len(t.nodes); i++ {
		if s.trie.Child(t.nodes[i].Parent, t.nodes[i].Frame) != uint32(i) {
			return false
		}
	}
	if len(t.strings) == 0 { // the segment is new
		s.string("")
		s.string("nanoseconds")
		return len(t.nodes) == 1
	}
	return len(t.strings) > unitNanoseconds && t.strings[unitNanoseconds] == "nanoseconds"
}

func (c counts) most(o counts) counts {
	return counts{max(c.strings, o.strings), max(c.fns, o.fns), max(c.frames, o.frames), max(c.nodes, o.nodes), max(c.processes, o.processes), max(c.threads, o.threads)}
}

func (c counts) within(o counts) bool {
	return c.strings <= o.strings && c.fns <= o.fns && c.frames <= o.frames && c.nodes <= o.nodes && c.processes <= o.processes && c.threads <= o.threads
}

// total returns how many entries there are with those that are not on disk.
func (s *segment) total() counts {
	f := &s.fresh
	return counts{
		s.on.strings + uint32(len(f.strings)), s.on.fns + uint32(len(f.fns)), s.on.frames + uint32(len(f.frames)),
		s.on.nodes + uint32(len(f.nodes)), s.on.processes + uint32(len(f.processes)), s.on.threads + uint32(len(f.threads)),
	}
}

// full reports whether the tables are so large that another segment should follow.
func (s *segment) full() bool {
	return s.tables() > maxTables
}

// tables returns about how many bytes of memory the tables take.
func (s *segment) tables() int {
	return s.trie.Len()*nodeBytes + len(s.frames)*frameBytes + len(s.fns)*fnBytes + len(s.strings)*stringBytes + s.bytes
}

func (s *segment) size() (n int64) {
	for _, size := range s.sizes {
		n += size
	}
	return n
}

func (s *segment) close() error {
	var errs []error
	for _, f := range s.files {
		if f != nil {
			errs = append(errs, f.Sync(), f.Close())
		}
	}
	return errors.Join(errs...)
}

// write appends a block of samples, and before it what is new in the tables. If it fails, the files
// are as before, and what is new in the tables is written the next time.
func (s *segment) write(p *packer, from, to int64, samples content) error {
	blocks := [filesOfSegment][]byte{s.fresh.encodeNames(s.on, s.strings), s.fresh.encodeNodes(s.on), s.fresh.encodeProcesses(s.on), samples.about}
	next := s.total()
	ranges := [filesOfSegment][2]int64{{int64(s.on.strings), int64(next.strings)}, {int64(s.on.nodes), int64(next.nodes)}, {int64(s.on.processes), int64(next.processes)}, {from, to}}
	var wrote [filesOfSegment]int64
	for i, raw := range blocks {
		if raw == nil {
			continue
		}
		var b []byte
		var err error
		if i == fileOfSamples {
			b, err = p.appendParts(nil, from, to, samples)
		} else {
			b, err = p.append(nil, fileKinds[i], ranges[i][0], ranges[i][1], raw)
		}
		if err == nil {
			_, err = s.files[i].WriteAt(b, s.sizes[i])
		}
		if err != nil {
			for j := i; j >= 0; j-- {
				// If this fails too, the bytes are overwritten by the next block.
				_ = s.files[j].Truncate(s.sizes[j])
			}
			return err
		}
		wrote[i] = int64(len(b))
	}
	for i := range wrote {
		s.sizes[i] += wrote[i]
	}
	s.on, s.fresh = next, fresh{}
	return nil
}

// recent numbers what was there lately.
type recent[T comparable] struct {
	now, before map[T]uint32
}

// place returns v's number; if it was not there lately, it gets the number next.
func (r *recent[T]) place(v T, next uint32) (i uint32, added bool) {
	if i, ok := r.now[v]; ok {
		return i, false
	}
	i, ok := r.before[v]
	if !ok {
		i = next
	}
	if r.now == nil {
		r.now = make(map[T]uint32)
	}
	r.now[v] = i
	return i, !ok
}

// mostRecent is how many there were lately.
const mostRecent = 1 << 13

// forget forgets what was not there for long, if there are many.
func (r *recent[T]) forget() {
	if len(r.now) >= mostRecent {
		r.before, r.now = r.now, nil
	}
}
