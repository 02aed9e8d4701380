package profile

import (
	"errors"
	"fmt"

	"github.com/candid-profiler/candid/internal/walk"
)

// ErrInvalid is wrapped by every error of Check.
var ErrInvalid = errors.New("invalid profile")

// Check reports whether all of the profile's indices are in range and its trie has
// no loop. Everything else in this package relies on that, so every profile
// that was read from a file is checked first.
func (p *Profile) Check() error {
	if len(p.Nodes) == 0 {
		return fmt.Errorf("%w: no root node", ErrInvalid)
	}
	for i, f := range p.Frames {
		if int(f.Func) >= len(p.Funcs) {
			return fmt.Errorf("%w: frame %d: function %d of %d", ErrInvalid, i, f.Func, len(p.Funcs))
		}
		if f.Kind >= walk.NumKinds || f.Prov > walk.Heuristic {
			return fmt.Errorf("%w: frame %d: kind %d, provenance %d", ErrInvalid, i, f.Kind, f.Prov)
		}
	}
	for i, n := range p.Nodes[1:] {
		if int(n.Parent) > i { // its own index is i+1
			return fmt.Errorf("%w: node %d: parent %d does not come before it", ErrInvalid, i+1, n.Parent)
		}
		if int(n.Frame) >= len(p.Frames) {
			return fmt.Errorf("%w: node %d: frame %d of %d", ErrInvalid, i+1, n.Frame, len(p.Frames))
		}
	}
	var err error
	i := 0
	p.Each(func(s *Sample, _ uint64) {
		if err == nil {
			err = p.checkSample(i, s)
		}
		i++
	})
	if err != nil {
		return err
	}
	for i := range p.Observations {
		o := &p.Observations[i]
		if int(o.Kind) >= len(ObservationKinds) || int(o.Process) >= len(p.Processes) || len(o.Values) != len(ObservationKinds[o.Kind].Values) {
			return fmt.Errorf("%w: observation %d: kind %d, process %d of %d, %d values", ErrInvalid, i, o.Kind, o.Process, len(p.Processes), len(o.Values))
		}
		for j, v := range o.Values {
			if ObservationKinds[o.Kind].Values[j] == ValueThread && v.Number != UnknownNumber && v.Number >= uint64(len(p.Threads)) {
				return fmt.Errorf("%w: observation %d: thread %d of %d", ErrInvalid, i, v.Number, len(p.Threads))
			}
		}
	}
	return nil
}

func (p *Profile) checkSample(i int, s *Sample) error {
	switch {
	case int(s.Node) >= len(p.Nodes):
		return fmt.Errorf("%w: sample %d: node %d of %d", ErrInvalid, i, s.Node, len(p.Nodes))
	case int(s.Thread) >= len(p.Threads):
		return fmt.Errorf("%w: sample %d: thread %d of %d", ErrInvalid, i, s.Thread, len(p.Threads))
	case int(s.Event) >= len(p.Events):
		return fmt.Errorf("%w: sample %d: event %d of %d", ErrInvalid, i, s.Event, len(p.Events))
	case int(s.Syscall) >= max(len(p.Syscalls), 1):
		return fmt.Errorf("%w: sample %d: system call %d of %d", ErrInvalid, i, s.Syscall, len(p.Syscalls))
	case s.End >= walk.NumEnds || int(s.State) >= len(stateNames):
		return fmt.Errorf("%w: sample %d: end %d, state %d", ErrInvalid, i, s.End, s.State)
	}
	return nil
}
