package profile

// Track identifies a track of a timeline: a thread's samples of an event.
type Track struct {
	Thread uint32
	Event  uint16
}

// TrackSamples holds the samples of one track, in the order of time.
type TrackSamples struct {
	Track
	Samples int
	Weight  uint64 // of all of them together
	log     *sampleLog
}

// Each visits the samples, in the order of time.
func (l *TrackSamples) Each(visit func(i int, s *Sample)) {
	i := 0
	l.log.each(func(s *Sample) {
		visit(i, s)
		i++
	})
}

// ByTrack splits the single samples of p by track.
func ByTrack(p *Profile) []TrackSamples {
	logs := p.packed
	if !tracked(p) {
		logs = nil
		of := map[Track]*sampleLog{}
		var last *sampleLog
		p.Each(func(s *Sample, _ uint64) {
			if t := (Track{s.Thread, s.Event}); last == nil || last.last.Thread != t.Thread || last.last.Event != t.Event {
				if last = of[t]; last == nil {
					last = p.room.log()
					of[t] = last
					logs = append(logs, last)
				}
			}
			last.add(*s)
		})
	}
	tracks := make([]TrackSamples, len(logs))
	for i, l := range logs {
		tracks[i] = TrackSamples{Track{l.last.Thread, l.last.Event}, l.n, l.weight, l.ordered()}
	}
	return tracks
}

// tracked reports whether p keeps the samples of each track separately.
func tracked(p *Profile) bool {
	seen := map[Track]bool{}
	for _, l := range p.packed {
		t := Track{l.last.Thread, l.last.Event}
		if l.mixed || seen[t] {
			return false
		}
		seen[t] = true
	}
	return len(p.Samples) == 0 && p.sums.samples == 0
}
