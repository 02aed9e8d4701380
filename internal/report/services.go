package report

import "time"

// Service is a service of a store and what it used.
type Service struct {
	Name    string  `json:"name"`
	CPU     int64   `json:"cpu_ns"`
	Samples uint64  `json:"samples"`
	Share   float64 `json:"share"` // of all services, 0 to 1: by CPU time, or by samples if none was measured
}

// mostServices is how many services text shows unless Options.Top says otherwise.
const mostServices = 20

// withShares returns services with their shares.
func withShares(list []Service) []Service {
	out := make([]Service, len(list))
	var cpu, samples float64
	for _, s := range list {
		cpu += float64(s.CPU)
		samples += float64(s.Samples)
	}
	for i, s := range list {
		switch {
		case cpu > 0:
			s.Share = float64(s.CPU) / cpu
		case samples > 0:
			s.Share = float64(s.Samples) / samples
		}
		s.Name = text(s.Name)
		out[i] = s
	}
	return out
}

// services writes which services used the CPUs.
func (pg *page) services(list []Service, top int) {
	if len(list) == 0 {
		return
	}
	if top == 0 {
		top = mostServices
	}
	pg.line("  %s", pg.paint(bold, "CPU              SAMPLES    SERVICE"))
	for i, s := range withShares(list) {
		if i == top {
			pg.line("  and %s more", plural(uint64(len(list)-top), "service", "services"))
			break
		}
		name := clean(s.Name)
		if name == "" {
			name = "(no service)"
		}
		pg.line("  %s  %s  %s    %s", right(finePercent(s.Share), 6), right(duration(time.Duration(s.CPU)), 7), right(grouped(s.Samples), 7), shorten(name, pg.room(32)))
	}
	pg.line("")
}
