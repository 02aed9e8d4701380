package nativeimage

import (
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
)

// Guesser is a walk.Stepper for images whose tables are not known. Callers are found by reading the
// code as any native code is read, or searched for; all of them are guesses, because the code keeps
// to no convention that reading it relies on.
type Guesser struct {
	code   []span
	native *native.Stepper
}

// Owns implements walk.Stepper.
func (g *Guesser) Owns(pc uint64) bool {
	for i := range g.code {
		if g.code[i].has(pc) {
			return true
		}
	}
	return false
}

// Step implements walk.Stepper.
func (g *Guesser) Step(c *walk.Cursor) walk.Verdict {
	if !g.Owns(c.Regs.PC) {
		return walk.NotMine
	}
	first := len(c.Stack.Frames)
	v := g.native.Step(c)
	for i := first; i < len(c.Stack.Frames); i++ {
		f := &c.Stack.Frames[i]
		f.Kind = walk.KindAOT
	}
	if v != walk.NotMine {
		c.Prov = walk.Heuristic
	}
	return v
}

func (g *Guesser) add(code span) {
	if !g.Owns(code.start) {
		g.code = append(g.code, code)
	}
}
