package record

import (
	"errors"
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/hotspot"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/target"
)

const (
	// observeEvery is how often the machine and the processes are looked at beside
	// their samples, and collectEvery how often a VM's count of collections.
	observeEvery = time.Second
	collectEvery = 90 * time.Millisecond
	// maxObserved is of how many processes at once at most: each costs some 50 µs, and
	// threads beside.
	maxObserved = 16
	// counterPatience is how often a VM is asked for counters that it has not yet.
	counterPatience = 100
)

// observer reads what the machine and the processes do beside their samples.
type observer struct {
	began   bool
	looked  time.Time // when all was
	counted time.Time // when collections were
	load    hostinfo.Load
	of      map[*process]*observed
	traffic map[string]*traffic // by network namespace
}

// observed is what was last seen of a process.
type observed struct {
	used     [2]uint64     // ticks: in the program, in the kernel
	load     hostinfo.Load // of the machine at that time
	seen     bool
	threads  threadLoads
	vm       *hotspot.VM
	counters *hotspot.PerfData
	asked    int
	gc       collections
	looks    int
	// libraries are those that were told of, by where they begin.
	libraries map[uint64]struct{}
}

// observe looks where it is time. A profile that nobody keeps has no observations.
func (s *session) observe(last bool) {
	o := &s.observer
	if s.o.Live != nil {
		return
	}
	now := time.Now()
	if !last && now.Sub(o.counted) < collectEvery {
		return
	}
	o.counted = now
	if !o.began {
		o.began, o.of = true, map[*process]*observed{}
		s.observeMachine()
	}
	all := now.Sub(o.looked) >= observeEvery || last && now.Sub(o.looked) >= observeEvery/10
	if all {
		o.looked = now
		load, err := hostinfo.Now()
		if err == nil {
			o.load = load
			s.seen(profile.PhysicalMemory, -1, profile.Number(load.Memory), profile.Number(load.MemoryUsed))
		}
		s.chooseObserved()
	}
	for p, seen := range o.of {
		if p.gone || p.vm == nil && s.o.All {
			delete(o.of, p)
			continue
		}
		if all {
			s.observeProcess(p, seen)
			s.threadLoads(p, &seen.threads, now, last)
			s.network(p, now)
			// Libraries come mostly when a program begins, and none is told of when it has
			// ended: at once, then those that are new after 1, 3, 7, … seconds.
			if seen.looks++; last || seen.looks&(seen.looks-1) == 0 {
				s.libraries(p, seen)
			}
		}
		s.observeVM(p, seen, all)
	}
}

// chooseObserved takes in processes that have come. On the whole machine those are
// Java's: there are too many others.
func (s *session) chooseObserved() {
	for _, p := range s.procs {
		if s.observer.of[p] != nil || p.gone || p.vm == nil && s.o.All {
			continue
		}
		if len(s.observer.of) >= maxObserved {
			s.note(fmt.Sprintf("more than %d processes at once: load, memory and collections are of %d of them", maxObserved, maxObserved))
			return
		}
		s.observer.of[p] = &observed{}
	}
}

// seen adds an observation of now.
func (s *session) seen(kind uint16, process int, values ...profile.Value) {
	s.b.Observe(profile.Observation{Kind: kind, Process: int32(process), Time: s.now(), Values: values})
}

// now is the time since sampling began, ns.
func (s *session) now() uint64 { return max(monotonic(), s.start) - s.start }

func (s *session) observeMachine() {
	info, err := hostinfo.Look()
	if err != nil {
		return
	}
	s.seen(profile.OSInformation, -1, profile.Text(info.OS))
	if info.Virtual != "" {
		s.seen(profile.VirtualizationInformation, -1, profile.Text(info.Virtual))
	}
	s.seen(profile.CPUInformation, -1, profile.Text(info.CPU), profile.Text(info.CPUs),
		profile.Number(uint64(info.Sockets)), profile.Number(uint64(info.Cores)), profile.Number(uint64(info.Threads)))
}

// observeProcess reads the load that a process is, and its memory.
func (s *session) observeProcess(p *process, seen *observed) {
	user, system, err := target.CPUTicks(p.target, 0)
	if err != nil || !p.target.Alive() {
		return
	}
	p.used.count(target.Nanoseconds(user + system))
	o := &s.observer
	if all := o.load.All - seen.load.All; seen.seen && o.load.All > seen.load.All && user >= seen.used[0] && system >= seen.used[1] {
		share := func(ticks uint64) profile.Value { return profile.Share(min(float64(ticks)/float64(all), 1)) }
		s.seen(profile.CPULoad, p.index, share(user-seen.used[0]), share(system-seen.used[1]), share(o.load.Busy-seen.load.Busy))
	}
	seen.used, seen.load, seen.seen = [2]uint64{user, system}, o.load, true
	if resident, peak, err := hostinfo.Memory(p.pid); err == nil && p.target.Alive() {
		s.seen(profile.ResidentSetSize, p.index, profile.Number(resident), profile.Number(peak))
	}
}

// observeVM reads a VM's counters: those of collections, and all once a second.
func (s *session) observeVM(p *process, seen *observed, all bool) {
	if p.vm != seen.vm { // it runs another program now
		seen.vm, seen.counters, seen.asked, seen.gc = p.vm, nil, 0, collections{}
	}
	if p.vm == nil {
		return
	}
	if seen.counters == nil {
		if seen.asked >= counterPatience {
			return
		}
		seen.asked++
		c, err := p.vm.OpenPerfData()
		if err != nil {
			if !errors.Is(err, hotspot.ErrNotReady) {
				seen.asked = counterPatience
				s.note(fmt.Sprintf("process %d: heap, collections, classes and compilations are not told of: %v", p.pid, err))
				s.describeVM(p, nil)
			}
			return
		}
		// The VM publishes its properties when it is nearly ready, and this last.
		if n, ok := c.Number("sun.rt.createVmEndTime"); !ok || n == 0 {
			return
		}
		seen.counters = c
		s.describeVM(p, c)
		all = true
	}
	before := monotonic()
	if !all && !seen.gc.ran(seen.counters) {
		seen.gc.looked = before
		return
	}
	if !seen.counters.Read() {
		return
	}
	s.collected(p, seen, before)
	if all {
		s.tellCollectors(p, seen)
		s.countVM(p, seen.counters)
	}
}

// numbers gives counters as values.
func numbers(c *hotspot.PerfData, names ...string) []profile.Value {
	out := make([]profile.Value, len(names))
	for i, name := range names {
		out[i] = profile.Number(profile.UnknownNumber)
		if n, ok := c.Number(name); ok && n >= 0 {
			out[i] = profile.Number(uint64(n))
		}
	}
	return out
}

// countVM reads what a VM counts.
func (s *session) countVM(p *process, c *hotspot.PerfData) {
	sum := func(values ...profile.Value) profile.Value {
		n := uint64(0)
		for _, v := range values {
			if v.Number == profile.UnknownNumber {
				return v
			}
			n += v.Number
		}
		return profile.Number(n)
	}
	s.seen(profile.ClassLoadingStatistics, p.index,
		sum(numbers(c, "java.cls.loadedClasses", "java.cls.sharedLoadedClasses")...), sum(numbers(c, "java.cls.unloadedClasses", "java.cls.sharedUnloadedClasses")...))
	s.seen(profile.JavaThreadStatistics, p.index, numbers(c, "java.threads.live", "java.threads.daemon", "java.threads.started", "java.threads.livePeak")...)
	compiler := numbers(c, "sun.ci.totalCompiles", "sun.ci.totalBailouts", "sun.ci.totalInvalidates", "sun.ci.osrCompiles", "sun.ci.standardCompiles",
		"sun.ci.osrBytes", "sun.ci.standardBytes", "sun.ci.nmethodSize", "sun.ci.nmethodCodeSize", "", "java.ci.totalTime")
	if n := &compiler[len(compiler)-1]; n.Number != profile.UnknownNumber {
		n.Number = uint64(ticksToNs(c, int64(n.Number))) / 1e6
	}
	s.seen(profile.CompilerStatistics, p.index, compiler...)
	safepoints := numbers(c, "sun.rt.safepoints", "sun.rt.safepointTime", "sun.rt.safepointSyncTime")
	if safepoints[0].Number != profile.UnknownNumber {
		for i := range safepoints[1:] {
			if v := &safepoints[i+1]; v.Number != profile.UnknownNumber {
				v.Number = uint64(ticksToNs(c, int64(v.Number)))
			}
		}
		s.seen(profile.SafepointStatistics, p.index, safepoints...)
	}
	used, committed, ok := heap(c, true)
	if ok {
		s.seen(profile.HeapStatistics, p.index, append([]profile.Value{profile.Number(used), profile.Number(committed)},
			numbers(c, "sun.gc.metaspace.used", "sun.gc.metaspace.capacity")...)...)
	}
}
