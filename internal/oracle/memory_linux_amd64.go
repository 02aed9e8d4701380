package oracle

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"os"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// Memory reads a process as it is now. It stands in for walk.Memory.
type Memory struct{ pid int }

// readSome reads as much as can be read at addr.
func (m *Memory) readSome(p []byte, addr uint64) int {
	if len(p) == 0 {
		return 0
	}
	n, err := unix.ProcessVMReadv(m.pid,
		[]unix.Iovec{{Base: &p[0], Len: uint64(len(p))}},
		[]unix.RemoteIovec{{Base: uintptr(addr), Len: len(p)}}, 0)
	if err != nil {
		return 0
	}
	return n
}

// Bytes fills p from addr; false unless all of it could be read.
func (m *Memory) Bytes(addr uint64, p []byte) bool { return m.readSome(p, addr) == len(p) }

// Word reads the 8 bytes at addr.
func (m *Memory) Word(addr uint64) (uint64, bool) {
	var b [8]byte
	if !m.Bytes(addr, b[:]) {
		return 0, false
	}
	var v uint64
	for i := range b {
		v |= uint64(b[i]) << (8 * i)
	}
	return v, true
}

// ReadAt fills p from addr or returns an error.
func (m *Memory) ReadAt(p []byte, addr uint64) error {
	if !m.Bytes(addr, p) {
		return fmt.Errorf("read %d bytes at %#x of process %d: not readable", len(p), addr, m.pid)
	}
	return nil
}

// Snapshot copies the registers and at most max bytes of the stack, from the red
// zone up, as an engine would. It reuses s.Stack.
func (t *Tracer) Snapshot(s *capture.Snapshot, max int) {
	buf := s.Stack[:0]
	start, top := t.regions.bounds(t.regs.Rsp)
	from := t.regs.Rsp - 128
	if from < start {
		from = start
	}
	*s = capture.Snapshot{PID: uint32(t.pid), TID: uint32(t.tid), Regs: t.Regs(), Weight: 1, Time: t.steps, StackAddr: from, StackTop: top}
	n := int(min(top-from, uint64(max)))
	if top <= from {
		n = 0
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	buf = buf[:t.mem.readSome(buf, from)]
	s.Stack = buf
	if len(buf) == 0 {
		s.Flags |= capture.StackUnread
	} else if from+uint64(len(buf)) < top {
		s.Flags |= capture.StackCut
	}
}

// regions finds the mapping that a stack pointer lies in.
type regions struct {
	pid  int
	list []region
	last region
}

type region struct{ start, end uint64 }

// find identifies the mapping that addr lies in by its end, 0 if it is in none: a main thread's
// stack grows downwards, so its end does not change.
func (r *regions) find(addr uint64) uint64 {
	_, end := r.bounds(addr)
	return end
}

// bounds returns the bounds of the mapping that addr lies in, 0 and 0 if it is in none.
func (r *regions) bounds(addr uint64) (start, end uint64) {
	if addr >= r.last.start && addr < r.last.end {
		return r.last.start, r.last.end
	}
	if !r.search(addr) {
		r.load()
		r.search(addr)
	}
	if addr >= r.last.start && addr < r.last.end {
		return r.last.start, r.last.end
	}
	return 0, 0
}

func (r *regions) search(addr uint64) bool {
	i := sort.Search(len(r.list), func(i int) bool { return r.list[i].end > addr })
	if i < len(r.list) && r.list[i].start <= addr {
		r.last = r.list[i]
		return true
	}
	return false
}

func (r *regions) load() {
	r.list = r.list[:0]
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", r.pid))
	if err != nil {
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, 64<<20))
	lines.Buffer(nil, 1<<16)
	for lines.Scan() {
		var a, b uint64
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x", &a, &b); n == 2 {
			r.list = append(r.list, region{a, b})
		}
	}
}

func splitLines(s string) iter.Seq[string] { return strings.SplitSeq(s, "\n") }
