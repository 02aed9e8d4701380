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
