package record

import (
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/target"
)

const (
	// observeEvery is how often the machine and the processes are read besides their samples, and
	// collectEvery how often runtimes are, for events that are over sooner.
	observeEvery = time.Second
	collectEvery = 90 * time.Millisecond
	// maxObserved is how many processes are observed at once: each costs some 50 µs, and its
	// threads cost extra.
	maxObserved = 16
)

// observer reads what the machine and the processes do besides their samples.
type observer struct {
	began   bool
	looked  time.Time // when everything was last read
	counted time.Time // when collections were last read
	load    hostinfo.Load
	of      map[*process]*observed
	traffic map[string]*traffic // by network namespace
	modules int                 // files with samples that were reported
}

// observed is the last reading of a process.
type observed struct {
	used    [2]uint64     // ticks in user mode and in the kernel
	load    hostinfo.Load // of the machine at that time
	seen    bool
	threads threadLoads
	looks   int
	// libraries that were reported, by start address
	libraries map[uint64]struct{}
}

// observe reads what is due. A profile that nobody keeps has no observations, nor one of which only the
// samples are wanted.
func (s *session) observe(last bool) {
	o := &s.observer
	if s.o.Live != nil || s.o.Unobserved {
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
		if last && s.overdue() {
			return // what is read besides samples is not worth waiting for
		}
		if p.gone || p.able.tells == nil && s.o.All {
			delete(o.of, p)
			continue
		}
		if all {
			s.observeProcess(p, seen)
			s.threadLoads(p, &seen.threads, now, last)
			s.network(p, now)
			// Most libraries are loaded when a program begins, and none can be read when it has
			// ended: so they are read at once, then the new ones after 1, 3, 7, … seconds.
			if seen.looks++; last || seen.looks&(seen.looks-1) == 0 {
				s.libraries(p, seen)
			}
		}
		if p.able.tells != nil {
			p.able.tells.Observe(all, observations{s, p})
		}
	}
}

// chooseObserved adds processes that have come. On the whole machine only those with a runtime that
// reports on itself are added: there are too many others.
func (s *session) chooseObserved() {
	for _, p := range s.procs {
		if s.observer.of[p] != nil || p.gone || p.able.tells == nil && s.o.All {
			continue
		}
		if len(s.observer.of) >= maxObserved {
			s.note(fmt.Sprintf("more than %d processes at once: load, memory and collections are of %d of them", maxObserved, maxObserved))
			return
		}
		s.observer.of[p] = &observed{}
	}
}

// seen adds an observation at the present time.
func (s *session) seen(kind uint16, process int, values ...profile.Value) {
	s.b.Observe(profile.Observation{Kind: kind, Process: int32(process), Time: s.now(), Values: values})
}

// now returns the time since sampling began, in ns.
func (s *session) now() uint64 { return max(monotonic(), s.start) - s.start }

// observations receives what a process's runtime reports about itself.
type observations struct {
	s *session
	p *process
}

var _ runtimes.Observations = observations{}

func (o observations) PID() int { return o.p.pid }

func (o observations) Seen(kind uint16, values ...profile.Value) {
	o.s.seen(kind, o.p.index, values...)
}

func (o observations) Observe(seen profile.Observation) {
	seen.Process = int32(o.p.index)
	o.s.b.Observe(seen)
}

func (o observations) Note(line string) { o.s.note(fmt.Sprintf("process %d: %s", o.p.pid, line)) }
func (o observations) Hurry()           { o.s.pace.hurry(time.Now()) }
func (o observations) Clock() uint64    { return monotonic() }
func (o observations) Start() uint64    { return o.s.start }

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

// observeProcess reads a process's CPU load and memory.
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
