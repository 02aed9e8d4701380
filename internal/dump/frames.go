//go:build linux || windows

package dump

import (
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/redact"
	"github.com/candid-profiler/candid/internal/target"
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

// frameKey is equal for equal frames.
type frameKey struct {
	pc, ref     uint64
	owner       uint8
	kind        walk.Kind
	returned    bool
	provenGuess bool
}

func stopsOf(d []time.Duration) Stops {
	if len(d) == 0 {
		return Stops{}
	}
	slices.Sort(d)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	return Stops{Count: len(d), MedianUS: us(d[len(d)/2]), MaxUS: us(d[len(d)-1])}
}

// commandLine returns the command for display. Secrets are left out, because dumps are sent to
// others as recordings are.
func commandLine(t *target.Process) string {
	const most = 512
	c := redact.Command(t.Cmdline())
	if c == "" {
		c = "[" + t.Comm() + "]"
	}
	if len(c) > most {
		c = strings.ToValidUTF8(c[:most], "") + "…"
	}
	return c
}
