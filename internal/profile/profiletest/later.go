package profiletest

import (
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// Later adds to p another first event, which has no samples.
func Later(p *profile.Profile) *profile.Profile {
	p.Events = append([]profile.Event{{Name: "page-faults", Kind: profile.EventCounter, Unit: "count", Period: 1}}, p.Events...)
	for i := range p.Samples {
		p.Samples[i].Event++
	}
	return p
}

// Reused returns a profile with two threads that had the same number one after the other: two and
// three samples.
func Reused() *profile.Profile {
	b := profile.NewBuilder()
	b.Profile().Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1000}}
	frame := b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: "work"}), BCI: -1})
	for i, name := range []string{"first", "second", "first", "second", "second"} {
		thread := b.NamedThread(7, 12, name)
		b.Add(profile.Sample{Time: uint64(i), Thread: thread, Node: b.Node(profile.RootNode, frame), Weight: 1000})
	}
	return b.Finish()
}

// Again returns a profile with a thread whose number the kernel reused for another one of the same
// name.
func Again() *profile.Profile {
	b := profile.NewBuilder()
	b.Profile().Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1000}}
	b.AddProcess(profile.Process{PID: 7, Command: "pools"})
	b.Meta().Duration = 10 * time.Second
	frame := b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: "work"}), BCI: -1})
	other := b.NewThread(7, 11, "pool-1")
	for k := range 2 {
		thread := b.NewThread(7, 12, "pool-1")
		for i := range 2 + k {
			b.Add(profile.Sample{Time: uint64(4*k+1)*1e9 + uint64(i)*1e8, Thread: thread, Node: b.Node(profile.RootNode, frame), Weight: 1000})
		}
	}
	b.Add(profile.Sample{Time: 9e9, Thread: other, Node: b.Node(profile.RootNode, frame), Weight: 1000})
	return b.Finish()
}
