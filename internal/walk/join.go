package walk

// Joiner is a Stepper of code in which one call of a function may have several frames that follow
// each other: the handler of an exception, which is a function of its own for the processor, called by
// the function that it belongs to.
type Joiner interface {
	// Joined reports whether two of its frames, of which inner returns into outer, are of the same
	// call of the same function. It must be called in the batch in which they were walked.
	Joined(inner, outer *Frame) bool
}

// Join leaves of frames that are of the same call of a function only the innermost one, which has the
// position that is executing. It is called after Walk with the result of that. Same stays what it
// says, as long as all of the thread's stacks are joined.
func (w *Walker) Join(s *Stack) {
	if !w.joins {
		return
	}
	n := len(s.Frames)
	kept, same := 0, 0
	var last Frame // as it was walked
	for i := range s.Frames {
		f := s.Frames[i]
		if i > 0 && last.Owner == f.Owner && w.joiners[f.Owner] != nil && w.joiners[f.Owner].Joined(&last, &f) {
			s.Frames[kept-1].Prov = max(s.Frames[kept-1].Prov, f.Prov)
		} else {
			s.Frames[kept] = f
			kept++
			if i > n-s.Same { // whether the innermost of these is left depends on the frame before it
				same++
			}
		}
		last = f
	}
	s.Frames, s.Same = s.Frames[:kept], same
}
