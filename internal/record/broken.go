package record

import (
	"cmp"
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/snapshot"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// SaveBroken says where stacks that are not complete are saved for whoever looks for the reason.
type SaveBroken struct {
	Dir   string // an existing directory; "": nothing is saved
	Files int    // the most that are written; 0: DefaultBroken
}

// DefaultBroken is the usual SaveBroken.Files.
const DefaultBroken = 20

// How long the end of a recording waits for a stack that is being saved: if the recording ends when
// somebody wants it to, and if it ends because its targets have.
const (
	brokenGrace    = 100 * time.Millisecond
	brokenPatience = 3 * time.Second
)

// saveTo opens the directory for stacks that are not complete.
func (s *session) saveTo(b SaveBroken) (err error) {
	most := cmp.Or(b.Files, DefaultBroken)
	if s.broken, err = snapshot.NewSaver(b.Dir, most); err != nil {
		return fmt.Errorf("save stacks that are not complete: %w", err)
	}
	s.o.Log(fmt.Sprintf("%s gets up to %d stacks that are not complete, each with its bytes, the registers, and the memory and files of the process that walking it read: "+
		"there may be secrets of the program among them", b.Dir, most))
	return nil
}

// saveBroken saves the stack that was just walked if it is not complete and none of its kind has been
// saved. Reading its process again takes long, and is done in the background.
func (s *session) saveBroken(p *process, snap *capture.Snapshot, out *profile.Sample, named bool) {
	certainty := profile.CertaintyOf(out.End, out.Flags)
	if certainty < profile.CertaintyHeuristic {
		return
	}
	v := s.broken
	switch {
	case out.End == walk.EndUnread:
		v.Skip(snapshot.Uncopied)
		return
	case p.gone:
		v.Skip(snapshot.Ended)
		return
	case !named:
		v.Skip(snapshot.Unnamed)
		return
	}
	note := certainty.String()
	if certainty == profile.CertaintyBroken {
		note += ": " + out.End.String()
	}
	kind := s.brokenKind(p, certainty, note, out.Node)
	if !v.Wants(kind) {
		return
	}
	// Another reader of the process, because this one is in use.
	t, err := target.Open(p.pid)
	if err != nil {
		v.Skip(snapshot.Ended)
		return
	}
	if t.StartTime != p.target.StartTime {
		t.Close()
		v.Skip(snapshot.Ended)
		return
	}
	t.EndReads(&s.reads)
	v.Save(t, snap, kind, note)
}

// brokenKind returns a text that is the same for stacks that are not complete for the same reason at
// the same place: the last function whose caller is certain, and what was found next. Truncated stacks
// of a process are of one kind.
func (s *session) brokenKind(p *process, certainty profile.Certainty, note string, node uint32) string {
	if certainty == profile.CertaintyTruncated {
		return fmt.Sprint(note, p.pid)
	}
	frames, funcs := s.b.Frames(), s.b.Funcs()
	kind := fmt.Sprint(note, s.stack.EndKind)
	before, last := "", ""
	for node != profile.RootNode {
		n := s.b.At(node)
		f := &frames[n.Frame]
		node = n.Parent
		if f.Kind == walk.KindKernel {
			continue
		}
		fn := &funcs[f.Func]
		name := fn.Name
		if fn.NoName {
			name = fn.Module // the name is an address
		}
		before, last = last, fmt.Sprint(name, f.Kind)
		if f.Prov == walk.Heuristic {
			break // what is further out is a guess too
		}
	}
	return kind + "\x00" + before + "\x00" + last
}
