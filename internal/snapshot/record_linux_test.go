package snapshot

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/engines"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// wanted is a kind of stack of which there is to be a snapshot.
type wanted struct {
	name string
	is   func(c *capture.Snapshot, r *Result) bool
}

func has(r *Result, is func(f *Frame) bool) bool {
	return slices.ContainsFunc(r.Frames, func(f Frame) bool { return is(&f) })
}

func ofKind(k walk.Kind) func(f *Frame) bool { return func(f *Frame) bool { return f.Kind == k } }

// inJava says that a stack of Java is complete, and that its innermost frame is of a kind.
func inJava(r *Result, first walk.Kind) bool {
	return r.End == walk.EndComplete && len(r.Frames) > 4 && r.Frames[0].Kind == first &&
		has(r, func(f *Frame) bool { return len(f.Function) > 6 && f.Function[:6] == "Kinds." })
}

var javaKinds = []wanted{
	{"interpreted", func(_ *capture.Snapshot, r *Result) bool { return inJava(r, walk.KindInterpreted) }},
	{"c1", func(_ *capture.Snapshot, r *Result) bool { return inJava(r, walk.KindC1) }},
	{"c2", func(_ *capture.Snapshot, r *Result) bool {
		return inJava(r, walk.KindInlined) && has(r, ofKind(walk.KindC2))
	}},
	{"stub", func(_ *capture.Snapshot, r *Result) bool { return inJava(r, walk.KindStub) }},
	{"native", func(_ *capture.Snapshot, r *Result) bool {
		return inJava(r, walk.KindNative) && has(r, ofKind(walk.KindNativeMethod))
	}},
}

var virtualKind = wanted{"virtual", func(c *capture.Snapshot, r *Result) bool {
	return r.End == walk.EndComplete && len(c.Regions) > 0 && has(r, func(f *Frame) bool { return f.Flags&walk.Virtual != 0 })
}}

// recorderSink makes snapshots of what an engine delivers until it has one of each kind.
type recorderSink struct {
	t       *testing.T
	cmd     *exec.Cmd
	target  *target.Process
	engine  capture.Engine
	code    *attach.Process // for the way along stacks that go on
	prefix  string
	missing []wanted
	taken   []*Snapshot
	tried   map[string]int
	done    func()
}

func (s *recorderSink) Notice(capture.ProcessEvent) {}

func (s *recorderSink) BatchEnd() {
	if f, ok := s.engine.(capture.Follower); ok {
		s.code.Look()
		if able, ok := runtimes.FollowerOf(s.code.Runtimes); ok {
			if how := able.Follow(); how != nil {
				_ = f.Follow(s.target.PID, how)
			}
		}
	}
}

func (s *recorderSink) Sample(c *capture.Snapshot) {
	if len(s.missing) == 0 {
		return
	}
	// Nothing changes while it is recorded.
	_ = s.cmd.Process.Signal(syscall.SIGSTOP)
	defer s.cmd.Process.Signal(syscall.SIGCONT)
	snap, err := Record(s.t.Context(), s.target, c)
	if err != nil {
		s.t.Log(err)
		return
	}
	i := slices.IndexFunc(s.missing, func(w wanted) bool { return w.is(c, &snap.Want) })
	if i < 0 {
		s.tried[fmt.Sprint(len(snap.Want.Frames) > 0 && snap.Want.Frames[0].Kind == walk.KindKernel, snap.Want.End)]++
		return
	}
	if !snap.replays() {
		got, err := snap.Replay()
		s.t.Logf("%s: a replay of %s differs: %v\n%s", s.prefix, s.missing[i].name, err, snap.Want.Diff(got))
		return
	}
	snap.Note = s.missing[i].name
	s.missing = slices.Delete(s.missing, i, i+1)
	s.taken = append(s.taken, snap)
	if len(s.missing) == 0 {
		s.done()
	}
}

// reduceFor is how long one snapshot is reduced: longer makes the files smaller.
const reduceFor = 5 * time.Second

// record takes snapshots of a program.
func record(t *testing.T, prefix string, cmd *exec.Cmd, want ...wanted) {
	t.Helper()
	cmd.Env = []string{"LANG=C"}
	p := fixture.Start(t, cmd)
	p.Await("ready")
	proc, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	code, err := attach.Open(cmd.Process.Pid, native.NewFiles())
	if err != nil {
		t.Fatal(err)
	}
	defer code.Close()
	engine, err := engines.Open(capture.Options{PIDs: []int{cmd.Process.Pid}, Period: 9973 * time.Microsecond, Events: []capture.Event{{Name: "cpu", Unit: "nanoseconds"}}}, "auto")
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := &recorderSink{t: t, cmd: cmd, target: proc, engine: engine, code: code, prefix: prefix, missing: slices.Clone(want), tried: map[string]int{}, done: cancel}
	if err := engine.Run(ctx, s); err != nil {
		t.Fatal(err)
	}
	proc.Close()
	_ = cmd.Process.Kill()
	for _, snap := range s.taken {
		before, _ := Encode(snap)
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), reduceFor)
		if !snap.Reduce(ctx) {
			t.Errorf("%s: a replay of %s differs", prefix, snap.Note)
		}
		cancel()
		took := time.Since(began)
		after, _ := Encode(snap)
		t.Logf("%s: %d bytes, %d before it was reduced in %v, %d frames: %s", snap.Note, len(after), len(before), took, len(snap.Want.Frames), snap.Want.Frames[0].Function)
	}
	b, err := Encode(s.taken...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d snapshots in %d bytes", prefix, len(s.taken), len(b))
	if err := os.WriteFile(filepath.Join(os.Getenv("CANDID_SNAPSHOTS"), prefix+".snapshot"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, w := range s.missing {
		t.Errorf("%s: no snapshot of %s; others: %v", prefix, w.name, s.tried)
	}
}

// TestRecord makes the files of testdata, in the directory that CANDID_SNAPSHOTS names.
func TestRecord(t *testing.T) {
	if os.Getenv("CANDID_SNAPSHOTS") == "" {
		t.Skip("CANDID_SNAPSHOTS names no directory for new snapshots")
	}
	for _, major := range []int{8, 11, 17, 21, 25, 27} {
		t.Run(fmt.Sprintf("jdk%d", major), func(t *testing.T) {
			want := javaKinds
			args := []string{"-Xmx64m", "-XX:-UsePerfData", "-cp", ".", "Kinds"}
			if major >= 21 {
				want = append(slices.Clone(want), virtualKind)
				args = append(args, "virtual")
			}
			cmd := exec.Command(fixture.JDKTool(t, major, "java"), args...)
			cmd.Dir = fixture.Classes(t, major, "testdata/Kinds.java")
			record(t, fmt.Sprintf("jdk%d", major), cmd, want...)
		})
	}
}
