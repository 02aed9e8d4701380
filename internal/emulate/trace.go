package emulate

// Trace is a trace that is kept until what it has read late has been read again.
type Trace struct {
	branches []Branch
	reads    []read
}

// Keep copies the last trace to t, which may have been used before.
func (m *Machine) Keep(t *Trace) {
	t.branches = append(t.branches[:0], m.Branches...)
	t.reads = append(t.reads[:0], m.mem.reads...)
}

// Confirm reads again what the trace has read late, and returns the branches up to the first that
// depends on something that has changed: it may have been different before, too.
func (t *Trace) Confirm(space Space, near *Nearby) []Branch {
	var b [8]byte
	same := len(t.reads)
	for i := range t.reads {
		r := &t.reads[i]
		if !space.Bytes(r.addr, b[:]) || uint64At(b[:]) != r.v {
			same = min(same, i)
			near.changed(r.addr)
		}
	}
	for i := range t.branches {
		if br := &t.branches[i]; br.Late && br.reads > same {
			if i > 0 {
				t.branches[i-1].Last = true
			}
			return t.branches[:i]
		}
	}
	return t.branches
}

func uint64At(b []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}
