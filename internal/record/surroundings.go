package record

import (
	"math/bits"
	"time"

	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/symbol"
)

// maxLibraries bounds how many libraries are reported for one process.
const maxLibraries = 4096

// libraries reports a process's program and libraries, each once: those that have come since the
// last call.
func (s *session) libraries(p *process, seen *observed) {
	modules, err := p.target.Modules()
	if err != nil {
		return
	}
	for i := range modules {
		m := &modules[i]
		if m.Inode == 0 || len(seen.libraries) >= maxLibraries {
			continue // the vdso is not a library
		}
		if _, told := seen.libraries[m.Start]; told {
			continue
		}
		if seen.libraries == nil {
			seen.libraries = map[uint64]struct{}{}
		}
		seen.libraries[m.Start] = struct{}{}
		s.seen(profile.NativeLibrary, p.index, profile.Text(m.Path), profile.Number(m.Start), profile.Number(m.End))
	}
}

// maxNativeModules bounds how many files with samples are reported.
const maxNativeModules = 1 << 16

// nativeModule reports a file that samples are in, by which it can be found again.
func (s *session) nativeModule(p symbol.Place, buildID string) {
	if s.observer.modules >= maxNativeModules || p.Path == "" {
		return
	}
	s.observer.modules++
	s.seen(profile.NativeModule, -1, profile.Text(p.Name), profile.Text(p.Path), profile.Text(buildID))
}

// traffic is the total through the interfaces of a network namespace at a time.
type traffic struct {
	at   time.Time
	used map[string]hostinfo.Interface
}

// network reports how much went through the interfaces that a process can use, once for all
// processes that share them. An interface without traffic is not reported, as in the JDK.
func (s *session) network(p *process, now time.Time) {
	o := &s.observer
	if o.traffic == nil {
		o.traffic = map[string]*traffic{}
	}
	space, err := hostinfo.NetworkSpace(p.pid)
	if err != nil {
		return
	}
	last := o.traffic[space]
	if last != nil && last.at.Equal(now) {
		return // another process has asked for it in this round
	}
	used, err := hostinfo.Network(p.pid)
	if err != nil || !p.target.Alive() {
		return
	}
	next := &traffic{now, make(map[string]hostinfo.Interface, len(used))}
	for _, i := range used {
		next.used[i.Name] = i
		if last == nil {
			continue
		}
		before, known := last.used[i.Name]
		if !known || i.Received < before.Received || i.Sent < before.Sent || i == before {
			continue
		}
		took := now.Sub(last.at)
		s.seen(profile.NetworkUtilization, -1, profile.Text(i.Name), profile.Number(bitRate(i.Received-before.Received, took)), profile.Number(bitRate(i.Sent-before.Sent, took)))
	}
	if len(o.traffic) < maxObserved || last != nil {
		o.traffic[space] = next
	}
}

// bitRate converts bytes in a time to bits per second.
func bitRate(bytes uint64, in time.Duration) uint64 {
	if in <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(bytes, 8*uint64(time.Second))
	if hi >= uint64(in) {
		return 1<<63 - 1
	}
	rate, _ := bits.Div64(hi, lo, uint64(in))
	return min(rate, 1<<63-1)
}
