package profiletest

import "github.com/candid-profiler/candid/internal/profile"

// Later gives p another first event, of which there are no samples.
func Later(p *profile.Profile) *profile.Profile {
	p.Events = append([]profile.Event{{Name: "page-faults", Unit: "count", Period: 1}}, p.Events...)
	for i := range p.Samples {
		p.Samples[i].Event++
	}
	return p
}

// Reused has two threads that had the same number one after the other: two and three
// samples.
func Reused() *profile.Profile {
	b := profile.NewBuilder()
	b.Profile().Events = []profile.Event{{Name: "cpu", Unit: "nanoseconds", Period: 1000}}
	frame := b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: "work"}), BCI: -1})
	for i, name := range []string{"first", "second", "first", "second", "second"} {
		thread := b.NamedThread(7, 12, name)
		b.Add(profile.Sample{Time: uint64(i), Thread: thread, Node: b.Node(profile.RootNode, frame), Weight: 1000})
	}
	return b.Finish()
}
