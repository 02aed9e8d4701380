package dump

import (
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// frames returns the frames that a frame of the walk stands for, innermost first.
func (p *process) frames(f walk.Frame) []Frame {
	l := &p.look
	key := frameKey{pc: f.PC, ref: f.Ref, owner: f.Owner, kind: f.Kind, returned: f.Flags&walk.ReturnAddress != 0, provenGuess: f.Prov == walk.Heuristic}
	if out, ok := l.named[key]; ok {
		return out
	}
	l.syms = p.Resolve(f, l.syms[:0])
	out := make([]Frame, 0, len(l.syms))
	for _, s := range l.syms {
		d := Frame{
			Function: s.Function, Raw: s.Raw, Module: s.Module, File: s.File, Line: s.Line,
			Kind: profile.KindName(s.Kind), Guessed: f.Prov == walk.Heuristic,
		}
		if s.BCI >= 0 {
			bci := s.BCI
			d.BCI = &bci
		}
		out = append(out, d)
	}
	l.named[key] = out
	return out
}

// kernelFrames is parseKernelStack with a cache: most threads wait in the same place. The result is
// shared.
func (p *process) kernelFrames(b []byte) []Frame {
	l := &p.look
	out, ok := l.kernel[string(b)]
	if !ok {
		out = parseKernelStack(b)
		l.kernel[string(b)] = out
	}
	return out
}
