package profile

import "testing"

// An event that did not happen is not the one shown first.
func TestFirstEvent(t *testing.T) {
	for _, c := range []struct {
		events []uint16
		want   int
	}{{nil, 0}, {[]uint16{1, 0}, 0}, {[]uint16{2, 1, 2}, 1}, {[]uint16{2}, 2}} {
		p := &Profile{Events: make([]Event, 3)}
		for _, e := range c.events {
			p.Samples = append(p.Samples, Sample{Event: e})
		}
		if got := p.FirstEvent(); got != c.want {
			t.Errorf("of samples of the events %v the first is %d, not %d", c.events, got, c.want)
		}
	}
}
