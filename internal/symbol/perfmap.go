package symbol

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

const (
	maxPerfMap     = 256 << 20 // bytes read of a file
	maxPerfEntries = 1 << 20
	perfMapPause   = time.Second // between two checks of the file
	mostPerfRead   = 16 << 20    // bytes read at once: samples wait meanwhile
	perfRoom       = 8 << 20     // bytes for which there must be room, again and again
)

// perfMap is /tmp/perf-PID.map, in which runtimes that compile at run time record the code that
// they generate: "START SIZE NAME" lines, hexadecimal, appended as code is generated
// (linux/tools/perf/Documentation/jit-interface.txt).
type perfMap struct {
	open    func() (*os.File, error)
	budget  func() *Budget // nil: there is none
	looked  time.Time
	pause   time.Duration // until it is checked again
	read    int64         // bytes taken over
	all     []perfEntry
	sorted  []perfEntry
	ino     os.FileInfo
	problem error
}

type perfEntry struct {
	addr uint64
	size uint32
	seq  uint32 // position in the file: of two overlapping entries the later is right
	name string
}

// find names addr. Every second it checks whether the file has grown: a runtime may put new code
// where old code was.
func (p *perfMap) find(addr uint64, now time.Time) (perfEntry, bool) {
	if p.looked.IsZero() || now.Sub(p.looked) >= p.pause {
		p.looked = now
		begun := threadTime()
		p.refresh()
		// A large map that grows all the time takes a tenth of a CPU at most.
		p.pause = max(perfMapPause, 10*(threadTime()-begun))
	}
	return p.lookup(addr)
}

func (p *perfMap) lookup(addr uint64) (perfEntry, bool) {
	i := sort.Search(len(p.sorted), func(i int) bool { return p.sorted[i].addr > addr }) - 1
	if i < 0 || addr-p.sorted[i].addr >= uint64(p.sorted[i].size) {
		return perfEntry{}, false
	}
	return p.sorted[i], true
}

// refresh reads what was appended.
func (p *perfMap) refresh() {
	f, err := p.open()
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			p.problem = err
		}
		return
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		p.problem = err
		return
	}
	if p.ino != nil && (!os.SameFile(p.ino, st) || st.Size() < p.read) {
		p.read, p.all = 0, nil // another file, or rewritten
	}
	p.ino = st
	if st.Size() <= p.read || p.read >= maxPerfMap {
		return
	}
	n := min(st.Size()-p.read, maxPerfMap-p.read, mostPerfRead)
	taken := p.parse(io.NewSectionReader(f, p.read, n))
	if taken == 0 && n == mostPerfRead && p.problem == nil {
		taken = n // no line is as long: it is not read again and again
	}
	p.read += taken
}

// parse reads the complete lines of r and returns their length in bytes.
func (p *perfMap) parse(r io.Reader) int64 {
	b := bufio.NewReaderSize(r, maxRawName)
	var n int64
	for len(p.all) < maxPerfEntries {
		if len(p.all)%(1<<14) == 0 && p.budget != nil && !p.budget().table(perfRoom) {
			p.problem = errNoRoom
			break
		}
		line, err := b.ReadSlice('\n')
		length := int64(len(line))
		skip := errors.Is(err, bufio.ErrBufferFull)
		text := string(line)
		for errors.Is(err, bufio.ErrBufferFull) { // an overlong line is cut
			line, err = b.ReadSlice('\n')
			length += int64(len(line))
		}
		if err != nil {
			break // the end, or a line that is still being written
		}
		n += length
		if e, ok := parsePerfLine(strings.TrimSuffix(text, "\n")); ok && !skip {
			e.seq = uint32(len(p.all))
			p.all = append(p.all, e)
		}
	}
	p.sort()
	return n
}

func parsePerfLine(s string) (perfEntry, bool) {
	a, rest, ok1 := strings.Cut(s, " ")
	b, name, ok2 := strings.Cut(rest, " ")
	addr, err1 := strconv.ParseUint(strings.TrimPrefix(a, "0x"), 16, 64)
	size, err2 := strconv.ParseUint(strings.TrimPrefix(b, "0x"), 16, 64)
	name = strings.TrimSpace(name)
	if !ok1 || !ok2 || err1 != nil || err2 != nil || size == 0 || addr+size < addr || name == "" {
		return perfEntry{}, false
	}
	return perfEntry{addr: addr, size: uint32(min(size, math.MaxUint32)), name: name}, true
}

// sort makes the ranges disjoint: code that was recorded later replaces the code that was there
// before.
func (p *perfMap) sort() {
	s := slices.Clone(p.all)
	slices.SortFunc(s, func(a, b perfEntry) int {
		if c := cmp.Compare(a.addr, b.addr); c != 0 {
			return c
		}
		return cmp.Compare(a.seq, b.seq)
	})
	out := s[:0]
	for _, e := range s {
		keep := true
		for len(out) > 0 {
			last := &out[len(out)-1]
			if e.addr-last.addr >= uint64(last.size) {
				break
			}
			if e.seq < last.seq {
				keep = false
				break
			}
			last.size = uint32(e.addr - last.addr)
			if last.size > 0 {
				break
			}
			out = out[:len(out)-1]
		}
		if keep {
			out = append(out, e)
		}
	}
	p.sorted = out
}
