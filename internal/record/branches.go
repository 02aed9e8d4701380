package record

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/emulate"
	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/target"
)

// Bounds of the branches of a recording.
const (
	maxBranches = 1 << 18 // different ones
	maxPending  = 1 << 10 // traces of a process whose late reads have not been confirmed
	// branchBatch is how soon the next batch is wanted: memory is read then.
	branchBatch = 20 * time.Millisecond
	// learnEvery is how often the engine is told what to copy besides the stack.
	learnEvery = 250 * time.Millisecond
	// confirms is how often what was read late is read again, in later batches.
	confirms = 2
)

// branches continues samples by emulation and counts the branches that it finds.
type branches struct {
	machine emulate.Machine
	sums    map[branch]*branchSum
	modules map[fileid.Content]uint32
	names   []string
	traces  uint64
	taken   uint64 // branches
	late    uint64 // of those: depend on memory that was read late
	dropped uint64 // branches that were too many different ones
	why     [emulate.NumWhys]uint64
	spent   time.Duration
}

// branch is a taken branch and the run of instructions behind it.
type branch struct {
	from, to, end    uint64 // addresses of their files
	fromFile, toFile uint32 // indices into branches.names; 0: no file
}

type branchSum struct{ count, late, last uint64 }

// tracing is what is kept of a process to continue its samples.
type tracing struct {
	code    *emulate.Code
	near    *emulate.Nearby
	space   branchSpace
	pending []pendingTrace
	spare   []emulate.Trace
	learned time.Time // when the engine was last told what to copy
	places  [1 << 12]codePlace
}

type pendingTrace struct {
	emulate.Trace
	left int // how often it is still to be confirmed
}

// codePlace is where an address of a process is in a file.
type codePlace struct {
	pc, addr uint64
	file     uint32
}

func newBranches() *branches {
	return &branches{sums: map[branch]*branchSum{}, modules: map[fileid.Content]uint32{}, names: []string{""}}
}

// branchSpace is a process's memory as traces read it.
type branchSpace struct {
	p    *process
	maps []target.Mapping
	read time.Time
}

var _ emulate.Space = (*branchSpace)(nil)

// mapping returns the mapping that holds an address; nil if there is none.
func (s *branchSpace) mapping(addr uint64) *target.Mapping {
	for {
		i := sort.Search(len(s.maps), func(i int) bool { return s.maps[i].End > addr })
		if i < len(s.maps) && addr >= s.maps[i].Start {
			return &s.maps[i]
		}
		now := time.Now()
		if now.Sub(s.read) < lookAgain {
			return nil
		}
		s.read = now
		s.maps, _ = s.p.target.Mappings() // if it cannot be read nothing is known
	}
}

// Code implements emulate.Space: only code in private mappings of files is executed.
func (s *branchSpace) Code(pc uint64, b []byte) int {
	m := s.mapping(pc)
	if m == nil || m.Inode == 0 || m.Perm&target.PermExec == 0 || m.Perm&target.PermWrite != 0 {
		return 0
	}
	b = b[:min(uint64(len(b)), m.End-pc)]
	if !s.p.target.Memory().Bytes(pc, b) {
		return 0
	}
	return len(b)
}

// Bytes implements emulate.Space.
func (s *branchSpace) Bytes(addr uint64, b []byte) bool { return s.p.target.Memory().Bytes(addr, b) }

// Fixed implements emulate.Space.
func (s *branchSpace) Fixed(addr uint64) bool {
	m := s.mapping(addr)
	return m != nil && m.Perm&(target.PermWrite|target.PermShared) == 0
}

// traceOn continues a sample of a thread that ran code of its own.
func (s *session) traceOn(p *process, snap *capture.Snapshot) {
	b := s.branches
	if b == nil || snap.State != capture.Running || snap.Flags&(capture.InKernel|capture.NoUser|capture.StackUnread) != 0 ||
		s.events[snap.Event].Kind != profile.EventCPU || snap.Regs.Arch != cpu.AMD64 || p.unseen || p.gone {
		return
	}
	begin := time.Now()
	t := p.tracing
	if t == nil {
		t = &tracing{code: emulate.NewCode(), near: emulate.NewNearby()}
		t.space.p, p.tracing = p, t
	}
	why := b.machine.Trace(snap, t.code, &t.space, t.near)
	t.near.Learn(&b.machine)
	b.why[why]++
	b.traces++
	if len(b.machine.Branches) > 0 {
		var kept emulate.Trace
		if n := len(t.spare); n > 0 {
			kept, t.spare = t.spare[n-1], t.spare[:n-1]
		}
		b.machine.Keep(&kept)
		if len(t.pending) >= maxPending {
			t.confirm(b, true)
		}
		t.pending = append(t.pending, pendingTrace{kept, confirms})
	}
	b.spent += time.Since(begin)
}

// confirm reads again what traces of earlier batches have read late, and counts the branches of
// those that need not be confirmed again, or of all of them.
func (t *tracing) confirm(b *branches, all bool) {
	begin := time.Now()
	left := t.pending[:0]
	for i := range t.pending {
		pt := &t.pending[i]
		list := pt.Confirm(&t.space, t.near)
		if pt.left--; pt.left > 0 && !all {
			left = append(left, *pt)
			continue
		}
		for k := range list {
			b.add(t, &list[k])
		}
		t.spare = append(t.spare, pt.Trace)
	}
	t.pending = left
	b.spent += time.Since(begin)
}

// place returns where an address is in a file.
func (b *branches) place(t *tracing, pc uint64) (addr uint64, file uint32) {
	c := &t.places[pc*0x9e3779b97f4a7c15>>(64-12)]
	if c.pc == pc && pc != 0 {
		return c.addr, c.file
	}
	*c = codePlace{pc: pc}
	if p, ok := t.space.p.code.Locate(pc); ok && p.Name != "" {
		id := p.Content
		n, known := b.modules[id]
		if !known || id == (fileid.Content{}) {
			if n = uint32(slices.Index(b.names, p.Name)); n == ^uint32(0) {
				n = uint32(len(b.names))
				b.names = append(b.names, p.Name)
			}
			b.modules[id] = n
		}
		c.addr, c.file = p.Addr, n
	}
	return c.addr, c.file
}

// add counts a branch.
func (b *branches) add(t *tracing, br *emulate.Branch) {
	var k branch
	k.from, k.fromFile = b.place(t, br.From)
	k.to, k.toFile = b.place(t, br.To)
	end, endFile := b.place(t, br.End)
	if k.end = end; endFile != k.toFile || end < k.to {
		k.end = k.to
	}
	if k.fromFile == 0 && k.toFile == 0 {
		return
	}
	sum := b.sums[k]
	if sum == nil {
		if len(b.sums) >= maxBranches {
			b.dropped++
			return
		}
		sum = &branchSum{}
		b.sums[k] = sum
	}
	b.taken++
	sum.count++
	if br.Late {
		b.late++
		sum.late++
	}
	if br.Last {
		sum.last++
	}
}

// confirmBranches is called at the first use of a process in a batch, when its memory may be read
// again.
func (s *session) confirmBranches(p *process) {
	t := p.tracing
	if t == nil {
		return
	}
	t.confirm(s.branches, false)
	now := time.Now()
	if p.able.follows != nil || s.engine.follower == nil || now.Sub(t.learned) < learnEvery {
		return
	}
	t.learned = now
	if how := t.near.Follow(); how != nil {
		if err := s.engine.follower.Follow(p.pid, how); err != nil {
			t.learned = now.Add(time.Hour)
			s.note(fmt.Sprintf("branches: memory besides stacks is only read after the samples: %v", err))
		}
	}
}

// endBranches hands what was counted to the profile and begins anew.
func (s *session) endBranches() {
	b := s.branches
	if b == nil {
		return
	}
	for _, p := range s.procs {
		if p.tracing != nil {
			if !p.gone {
				p.target.Memory().Invalidate()
			}
			p.tracing.confirm(b, true)
		}
	}
	keys := make([]branch, 0, len(b.sums))
	for k := range b.sums {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y branch) int {
		return cmp.Or(cmp.Compare(x.fromFile, y.fromFile), cmp.Compare(x.from, y.from), cmp.Compare(x.toFile, y.toFile), cmp.Compare(x.to, y.to), cmp.Compare(x.end, y.end))
	})
	for _, k := range keys {
		n := b.sums[k]
		s.seen(profile.NativeBranch, -1, profile.Text(b.names[k.fromFile]), profile.Number(k.from), profile.Text(b.names[k.toFile]),
			profile.Number(k.to), profile.Number(k.end), profile.Number(n.count), profile.Number(n.late), profile.Number(n.last))
	}
	for _, line := range b.notes() {
		s.note(line)
	}
	spare := newBranches()
	spare.machine, spare.modules, spare.names = b.machine, b.modules, b.names
	s.branches = spare
}

// notes says what was found.
func (b *branches) notes() []string {
	if b.traces == 0 {
		return []string{"branches: no sample was in x86-64 code of a file that could be continued"}
	}
	share := func(n, all uint64) float64 { return 100 * float64(n) / float64(max(all, 1)) }
	out := []string{fmt.Sprintf("branches: %d from %d samples, %.0f each; %.0f %% depend on memory that was read after the sample and found unchanged; emulation took %v of candid's CPU time",
		b.taken, b.traces, float64(b.taken)/float64(b.traces), share(b.late, b.taken), b.spent.Round(time.Millisecond))}
	line := "branches: traces ended"
	for w, n := range b.why {
		if n > 0 {
			line += fmt.Sprintf(" %s %.0f %%,", emulate.Why(w).Text(), share(n, b.traces))
		}
	}
	out = append(out, line[:len(line)-1])
	if b.dropped > 0 {
		out = append(out, fmt.Sprintf("branches: %d were dropped: there are more than %d different ones", b.dropped, maxBranches))
	}
	return out
}
