package profile

import (
	"cmp"
	"math"
	"slices"
)

// ThreadKinds returns what threads are for: those that a program started by itself are native if
// its runtime does not know of them; the others run or compile managed code, collect its garbage or
// do something else for the runtime.
func ThreadKinds() []string {
	return []string{javaThreadKind, dotnetThreadKind, "pool", "finalizer", "compiler", "gc", "vm", "native"}
}

// Kinds of threads that run a program's own code: Java's, and .NET's but for those of its thread
// pool.
const (
	javaThreadKind   = "java"
	dotnetThreadKind = "dotnet"
)

// UnknownThreadKind is the name in Filter.ThreadKinds for threads whose kind is not known.
const UnknownThreadKind = "unknown"

// kindFilter returns a function that reports whether a thread is of one of some kinds; nil for all.
// The page's buttons mean the same: web/src/page/kinds.ts.
func (p *Profile) kindFilter(kinds []string) func(t *Thread) bool {
	if kinds == nil {
		return func(*Thread) bool { return true }
	}
	managed := make(map[int]bool) // processes
	for _, own := range []string{javaThreadKind, dotnetThreadKind} {
		if slices.Contains(kinds, own) {
			for i := range p.Threads {
				if t := &p.Threads[i]; t.Kind == own {
					managed[t.PID] = true
				}
			}
		}
	}
	known := ThreadKinds()
	return func(t *Thread) bool {
		if slices.Contains(known, t.Kind) {
			return slices.Contains(kinds, t.Kind)
		}
		return managed[t.PID] || slices.Contains(kinds, UnknownThreadKind)
	}
}

// processFilter returns a function that reports whether a filter chooses a process by its number.
// One of the processes that had the same number has to match.
func (p *Profile) processFilter(f Filter) func(pid int) bool {
	if f.Process == nil && f.PIDs == nil {
		return func(int) bool { return true }
	}
	chosen := make(map[int]bool)
	for i := range p.Processes {
		if r := &p.Processes[i]; f.Process == nil || f.Process.MatchString(r.Command) {
			chosen[r.PID] = true
		}
	}
	return func(pid int) bool {
		return (f.Process == nil || chosen[pid]) && (f.PIDs == nil || slices.Contains(f.PIDs, pid))
	}
}

// OfUnknownKind counts the samples that a filter leaves out only because the kind of their thread
// is not known. Programs without a runtime have no kinds of threads: if any process has them,
// samples of the others are not counted.
func (p *Profile) OfUnknownKind(f Filter) uint64 {
	if f.ThreadKinds == nil || slices.Contains(f.ThreadKinds, UnknownThreadKind) {
		return 0
	}
	managed := make(map[int]bool)
	for i := range p.Processes {
		if p.Processes[i].Runtime != "" {
			managed[p.Processes[i].PID] = true
		}
	}
	for i := range p.Threads {
		if p.Threads[i].Kind != "" {
			managed[p.Threads[i].PID] = true
		}
	}
	taken := p.ThreadsOf(f)
	f.ThreadKinds = []string{UnknownThreadKind}
	m := p.matcher(f)
	for i := range p.Threads {
		m.threads[i] = m.threads[i] && !taken[i] && (len(managed) == 0 || managed[p.Threads[i].PID])
	}
	var n uint64
	p.Each(func(s *Sample, times uint64) {
		if int(s.Event) == f.Event {
			if _, ok := m.part(s); ok {
				n += times
			}
		}
	})
	return n
}

// ThreadCount is a row of the thread table.
type ThreadCount struct {
	Thread  uint32 // index into Threads
	Samples Count
	Quality Quality
	// KernelShare is the thread's part of the CPU time that the kernel accounted to all threads, 0
	// to 1; -1 if not known.
	KernelShare float64
	// Expected is how many samples, each of the mean weight of the thread's own, that share would
	// be. Disagrees reports that the samples taken differ by more than chance explains: three
	// standard deviations, and one sample.
	Expected  float64
	Disagrees bool
}

// ByThread returns the thread table: the most weight first. Threads without a sample are in it if
// the kernel saw them run and no filter is set.
func (s *Selection) ByThread() []ThreadCount {
	p := s.Profile
	// The comparison needs all samples of a thread.
	whole := s.Chosen == s.All && s.comparable()
	var kernel float64
	var taken Count
	for i, t := range p.Threads {
		if t.KernelCPU > 0 {
			kernel += float64(t.KernelCPU)
			taken.Samples += s.Threads[i].Samples
			taken.Weight += s.Threads[i].Weight
		}
	}
	var rows []ThreadCount
	for i, t := range p.Threads {
		row := ThreadCount{Thread: uint32(i), Samples: s.Threads[i], Quality: s.threadQuality[i], KernelShare: -1}
		if row.Samples.Samples == 0 && (!whole || t.KernelCPU == 0) {
			continue
		}
		if whole && t.KernelCPU > 0 && taken.Samples > 0 {
			row.KernelShare = float64(t.KernelCPU) / kernel
			row.Expected = row.KernelShare * taken.asSamplesOf(row.Samples)
			deviation := math.Sqrt(row.Expected * (1 - row.KernelShare))
			row.Disagrees = math.Abs(float64(row.Samples.Samples)-row.Expected) > 3*deviation+1
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b ThreadCount) int {
		return cmp.Or(cmp.Compare(b.Samples.Weight, a.Samples.Weight), cmp.Compare(b.Samples.Samples, a.Samples.Samples),
			cmp.Compare(b.KernelShare, a.KernelShare))
	})
	return rows
}

// ByThread returns Selection.ByThread without the rest of a Selection: it takes no memory for
// stacks.
func (p *Profile) ByThread(f Filter) []ThreadCount {
	s := &Selection{Profile: p, Filter: f, Threads: make([]Count, len(p.Threads)), threadQuality: make([]Quality, len(p.Threads))}
	s.choose(func(*Sample, Count) {})
	return s.ByThread()
}

// asSamplesOf returns how many samples c would be if each weighed as much as those of another count
// do on average: an engine that falls behind takes fewer samples, which stand for more.
func (c Count) asSamplesOf(other Count) float64 {
	if c.Weight == 0 || other.Weight == 0 || other.Samples == 0 {
		return float64(c.Samples)
	}
	return float64(c.Weight) / (float64(other.Weight) / float64(other.Samples))
}

// comparable reports whether the event's samples can be compared with the CPU time that the kernel
// accounts.
func (s *Selection) comparable() bool {
	e := s.Filter.Event
	return e < len(s.Profile.Events) && s.Profile.Events[e].Kind == EventCPU
}
