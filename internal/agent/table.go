package agent

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/agent/service"
	"github.com/candid-profiler/candid/internal/profile"
)

const unknown = service.Unknown

// table is what is known of services: what they used in the last minutes.
type table struct {
	mu    sync.Mutex
	how   map[string]string // by service: how it was decided
	spans []span            // oldest first
}

// span is what services used in one part.
type span struct {
	from, to time.Time
	used     map[string]use
}

type use struct {
	cpu       time.Duration
	samples   uint64
	processes int
}

const (
	// remembered is how many parts the table has.
	remembered = 10
	// maxHow bounds how many services it is known of how they were decided.
	maxHow = 1 << 14
)

// ServiceUse is one service in the answer to candid agent services.
type ServiceUse struct {
	Service   string  `json:"service"`
	How       string  `json:"how"`       // "rule 2", "unit", "container", "jar or class", "program", "kernel"
	CPUs      float64 `json:"cpus"`      // CPUs that it used on average
	Samples   uint64  `json:"samples"`   // of it
	Processes int     `json:"processes"` // of it that were sampled in the latest part
}

// Services is the answer to candid agent services.
type Services struct {
	From     time.Time    `json:"from"`
	To       time.Time    `json:"to"`
	Services []ServiceUse `json:"services"` // most CPU first
}

// decided records how a service was decided.
func (t *table) decided(d service.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.how == nil || len(t.how) >= maxHow {
		t.how = map[string]string{}
	}
	t.how[d.Service] = d.How
}

// add adds a part, and calls exceeded with what each service used in it.
func (t *table) add(p *profile.Profile, exceeded func(service string, cpus float64, part time.Duration)) {
	s := span{from: p.Meta.Start, to: p.Meta.Start.Add(p.Meta.Duration), used: map[string]use{}}
	names := make(map[int]string, len(p.Processes))
	for i := range p.Processes {
		names[p.Processes[i].PID] = serviceOf(p, i)
	}
	threads := make([]string, len(p.Threads))
	for i := range p.Threads {
		threads[i] = cmp.Or(names[p.Threads[i].PID], unknown)
	}
	seen := map[int]bool{}
	p.Each(func(sample *profile.Sample, n uint64) {
		e := &p.Events[sample.Event]
		if e.Kind != profile.EventCPU {
			return
		}
		name := threads[sample.Thread]
		u := s.used[name]
		u.cpu += time.Duration(sample.Weight)
		u.samples += n
		if pid := p.Threads[sample.Thread].PID; !seen[pid] {
			seen[pid] = true
			u.processes++
		}
		s.used[name] = u
	})
	t.mu.Lock()
	if len(t.spans) >= remembered {
		t.spans = slices.Delete(t.spans, 0, len(t.spans)-remembered+1)
	}
	t.spans = append(t.spans, s)
	t.mu.Unlock()
	if length := p.Meta.Duration; length > time.Second {
		for name, u := range s.used {
			exceeded(name, u.cpu.Seconds()/length.Seconds(), length)
		}
		exceeded("", 0, length)
	}
}

// list returns what services used in the parts that are remembered.
func (t *table) list() Services {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out Services
	if len(t.spans) == 0 {
		return out
	}
	out.From, out.To = t.spans[0].from, t.spans[len(t.spans)-1].to
	sum := map[string]use{}
	length := time.Duration(0)
	for i, s := range t.spans {
		length += s.to.Sub(s.from)
		for name, u := range s.used {
			all := sum[name]
			all.cpu += u.cpu
			all.samples += u.samples
			if i == len(t.spans)-1 {
				all.processes = u.processes
			}
			sum[name] = all
		}
	}
	for name, u := range sum {
		out.Services = append(out.Services, ServiceUse{name, cmp.Or(t.how[name], "program"), u.cpu.Seconds() / max(length.Seconds(), 1e-3), u.samples, u.processes})
	}
	slices.SortFunc(out.Services, func(a, b ServiceUse) int {
		return cmp.Or(cmp.Compare(b.CPUs, a.CPUs), cmp.Compare(a.Service, b.Service))
	})
	return out
}
