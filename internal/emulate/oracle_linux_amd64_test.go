package emulate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/oracle"
	"github.com/candid-profiler/candid/internal/target"
)

// live is the memory of a traced process.
type live struct {
	*oracle.Memory
	code, fixed []target.Mapping
}

func newLive(t testing.TB, pid int, mem *oracle.Memory) *live {
	t.Helper()
	p, err := target.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	maps, err := p.Mappings()
	if err != nil {
		t.Fatal(err)
	}
	l := &live{Memory: mem}
	for _, m := range maps {
		if m.Perm&target.PermWrite != 0 {
			continue
		}
		l.fixed = append(l.fixed, m)
		if m.Perm&target.PermExec != 0 && m.Inode != 0 {
			l.code = append(l.code, m)
		}
	}
	return l
}

func within(list []target.Mapping, addr uint64) *target.Mapping {
	for i := range list {
		if m := &list[i]; addr >= m.Start && addr < m.End {
			return m
		}
	}
	return nil
}

func (l *live) Code(pc uint64, p []byte) int {
	m := within(l.code, pc)
	if m == nil {
		return 0
	}
	p = p[:min(uint64(len(p)), m.End-pc)]
	if !l.Memory.Bytes(pc, p) {
		return 0
	}
	return len(p)
}

func (l *live) Fixed(addr uint64) bool { return within(l.fixed, addr) != nil }

// place returns the file that addr is in, where in the file, and the code there.
func (l *live) place(addr uint64) string {
	m := within(l.code, addr)
	if m == nil {
		return fmt.Sprintf("%#x", addr)
	}
	var code [8]byte
	l.Memory.Bytes(addr, code[:])
	return fmt.Sprintf("%s+%#x (% x)", filepath.Base(m.Path), addr-m.Start+m.Offset, code)
}

func (l *live) places(path []uint64) string {
	list := make([]string, len(path))
	for i, addr := range path {
		list[i] = l.place(addr)
	}
	return strings.Join(list, ", ")
}

// score counts branches.
type score struct {
	traces, branches, wrong int
	late, lateWrong         int // of those: depend on memory that was read late
	why                     [NumWhys]int
}

// compare counts the branches that are on the real path, a list of the instructions' addresses.
func (s *score) compare(t *testing.T, branches []Branch, path []uint64) {
	i := 0
	for _, b := range branches {
		for i < len(path) && path[i] != b.From {
			i++
		}
		right := i+1 < len(path) && path[i+1] == b.To
		s.branches++
		if b.Late {
			s.late++
		}
		if !right {
			s.wrong++
			if b.Late {
				s.lateWrong++
			} else {
				t.Errorf("from %#x: a branch at %#x to %#x depends on nothing that was read late, but was not taken", path[0], b.From, b.To)
			}
		}
		i++
	}
}

// subject is a program that is traced at random moments.
type subject struct {
	tr    *oracle.Tracer
	space *live
	code  *Code
	near  *Nearby
	m     Machine
	how   *capture.Follow
	snap  capture.Snapshot
	n     int
}

func newSubject(t *testing.T, argv ...string) *subject {
	t.Helper()
	runtime.LockOSThread() // for good: ptrace and Pin belong to the thread
	tr, err := oracle.Start(argv[0], argv[1:]...)
	if err != nil {
		t.Skipf("cannot trace a program here: %v", err)
	}
	t.Cleanup(tr.Kill)
	if err := tr.Pin(); err != nil {
		t.Fatal(err)
	}
	if err := tr.Continue(50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	s := &subject{tr: tr, code: NewCode(), near: NewNearby()}
	s.space = newLive(t, tr.PID(), tr.Memory())
	s.how = s.near.Follow()
	return s
}

// stop lets the program run for a random time and takes a snapshot as an engine would.
func (s *subject) stop(t *testing.T) {
	t.Helper()
	if err := s.tr.Continue(time.Duration(1+rand.IntN(3000)) * time.Microsecond); err != nil {
		t.Fatal(err)
	}
	s.snap.Stack = nil
	s.tr.Snapshot(&s.snap, 1<<20)
	if s.n++; s.n%20 == 0 {
		if f := s.near.Follow(); f != nil {
			s.how = f
		}
	}
	f := capture.Followed{
		Load:     func(b []byte, addr uint64) bool { return s.space.Bytes(addr, b) },
		Register: func(n uint32) (uint64, bool) { return s.snap.Regs.R[n], true },
		SP:       s.tr.SP(), Most: 1 << 20,
	}
	f.Go(s.how)
	s.snap.Regions = f.Regions
}

// step executes n instructions and returns their addresses, and the one after them.
func (s *subject) step(t *testing.T, n int) []uint64 {
	t.Helper()
	path := []uint64{s.tr.PC()}
	for most := n + maxRepeats*maxRepeats; len(path) <= n && most > 0; most-- {
		if err := s.tr.Step(); err != nil {
			if errors.Is(err, oracle.ErrBlocked) {
				break
			}
			t.Fatal(err)
		}
		// A string instruction that was interrupted takes several steps, which a trace counts as one.
		if pc := s.tr.PC(); pc != path[len(path)-1] {
			path = append(path, pc)
		}
	}
	return path
}

// stored compares what the trace has stored with what the program has.
func (s *subject) stored(t *testing.T, from uint64) {
	t.Helper()
	for i := range s.m.mem.words {
		w := &s.m.mem.words[i]
		var b [8]byte
		if w.round != s.m.mem.round || !s.space.Bytes(w.addr, b[:]) {
			continue
		}
		for k := range 8 {
			if w.stored>>k&w.known>>k&1 != 0 && byte(w.v>>(8*k)) != b[k] {
				t.Fatalf("after %d steps from %#x: at %#x there is % x, not %#x (known %#x)", s.m.Steps, from, w.addr, b, w.v, w.known)
			}
		}
	}
}

// program compiles testdata/work.c.
func program(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "work")
	if err := fixture.Compile(fixture.Tool(t, "gcc"), "-O2", "-o", exe, "testdata/work.c", "-lm"); err != nil {
		t.Fatal(err)
	}
	return exe
}

// TestInstructions executes traces on memory as it is at that moment, and compares every register
// that is known, and every branch, with what single-stepping shows.
func TestInstructions(t *testing.T) {
	if testing.Short() {
		t.Skip("stepping takes long")
	}
	s := newSubject(t, program(t))
	traces := 60
	if fixture.Full(t) {
		traces = 1500
	}
	var sc score
	steps := 0
	for range traces {
		s.stop(t)
		sc.why[s.m.Trace(&s.snap, s.code, s.space, NewNearby())]++
		path := s.step(t, s.m.Steps)
		if len(path) != s.m.Steps+1 {
			continue
		}
		steps += s.m.Steps
		sc.traces++
		regs := s.tr.Regs()
		for dwarf, n := range hardware {
			for i := range 8 {
				if s.m.known[n]>>i&1 != 0 && byte(s.m.r[n]>>(8*i)) != byte(regs.R[dwarf]>>(8*i)) && len(s.m.Branches) < MaxBranches {
					t.Fatalf("after %d steps from %s, which ended %s: register %d is %#x (known %#x), really %#x; the last of them: %s",
						s.m.Steps, s.space.place(path[0]), s.m.why.Text(), n, s.m.r[n], s.m.known[n], regs.R[dwarf], s.space.places(path[max(0, len(path)-24):]))
				}
			}
		}
		if len(s.m.Branches) < MaxBranches {
			s.stored(t, path[0])
		}
		sc.compare(t, s.m.Branches, path)
		if sc.wrong > 0 {
			t.Fatalf("%d of %d branches were not taken", sc.wrong, sc.branches)
		}
	}
	if sc.branches < 10*traces {
		t.Errorf("only %d branches in %d traces", sc.branches, sc.traces)
	}
	t.Logf("%d traces, %d instructions, %d branches, 0 wrong; ends %v", sc.traces, steps, sc.branches, sc.why)
}

// TestLateReads lets the program run on before its memory is read, as in a recording, and says how
// many branches are the real ones. Those that depend on nothing that was read late have to be.
func TestLateReads(t *testing.T) {
	if testing.Short() {
		t.Skip("stepping takes long")
	}
	s := newSubject(t, program(t))
	traces := 60
	if fixture.Full(t) {
		traces = 800
	}
	const delay = 10 * time.Millisecond
	var sc score
	for range traces {
		s.stop(t)
		path := s.step(t, MaxInstructions)
		if err := s.tr.Continue(delay); err != nil {
			t.Fatal(err)
		}
		sc.why[s.m.Trace(&s.snap, s.code, s.space, s.near)]++
		s.near.Learn(&s.m)
		var kept Trace
		s.m.Keep(&kept)
		if err := s.tr.Continue(delay); err != nil {
			t.Fatal(err)
		}
		sc.traces++
		sc.compare(t, kept.Confirm(s.space, s.near), path)
	}
	share := float64(sc.branches-sc.wrong) / float64(max(sc.branches, 1))
	t.Logf("%d traces, %d branches, %d of them late; %.1f %% are the real ones (%d late ones are not); ends %v", sc.traces, sc.branches, sc.late, 100*share, sc.lateWrong, sc.why)
	if sc.branches < 3*traces || share < 0.9 {
		t.Errorf("%.1f %% of %d branches are the real ones", 100*share, sc.branches)
	}
}
