package record

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/snapshot"
	"github.com/candid-profiler/candid/internal/walk"
)

// saved reads what was saved in a directory.
func saved(t *testing.T, dir string) (out []*snapshot.Snapshot) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		st, err := os.Stat(path)
		if err != nil || st.Mode() != 0o600 {
			t.Errorf("%s has mode %v (%v)", path, st.Mode(), err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		snaps, err := snapshot.Decode(b)
		if err != nil || len(snaps) != 1 {
			t.Fatalf("%s: %d snapshots, %v", path, len(snaps), err)
		}
		s := snaps[0]
		t.Logf("%s, %d bytes: %s\n%v", filepath.Base(path), len(b), s.Note, s.Want)
		if !strings.HasPrefix(filepath.Base(path), fmt.Sprintf("candid-broken-%d-%d-", s.Capture.PID, s.Capture.TID)) {
			t.Errorf("%s is of thread %d of process %d", path, s.Capture.TID, s.Capture.PID)
		}
		out = append(out, s)
	}
	return out
}

// messages returns a function for Options.Log, and one that returns what was logged.
func messages() (log func(string), all func() string) {
	var mu sync.Mutex
	var b strings.Builder
	return func(line string) {
			mu.Lock()
			defer mu.Unlock()
			b.WriteString(line + "\n")
		}, func() string {
			mu.Lock()
			defer mu.Unlock()
			return b.String()
		}
}

// Of stacks that are not complete, one of each kind is saved, and a replay has the same frames.
func TestSaveBroken(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the program generates x86-64 code")
	}
	program := compile(t, "guesses", "-fno-omit-frame-pointer")
	tooLittle := fixture.Watch(t)
	dir := t.TempDir()
	log, said := messages()
	r := run(t, Options{Command: []string{program, "3"}, Log: log, SaveBroken: SaveBroken{Dir: dir}})
	t.Log(said())
	if !strings.Contains(said(), dir+" gets up to 20 stacks that are not complete") || !strings.Contains(said(), "saved in "+dir) {
		t.Errorf("not said at the start and at the end:\n%s", said())
	}
	kinds := map[string]bool{}
	for _, s := range saved(t, dir) {
		if s.Want.Certainty() < profile.CertaintyHeuristic {
			t.Errorf("a stack was saved that is %v:\n%v", s.Want.Certainty(), s.Want)
		}
		if got, err := s.Replay(); err != nil || !got.Equal(s.Want) {
			t.Errorf("a replay has another result: %v\n%s", err, s.Want.Diff(got))
		}
		frames := slices.DeleteFunc(slices.Clone(s.Want.Frames), func(f snapshot.Frame) bool { return f.Kind == walk.KindKernel })
		guess := slices.IndexFunc(frames, func(f snapshot.Frame) bool { return f.Prov == walk.Heuristic })
		if s.Note != "heuristic" || guess < 1 {
			continue
		}
		kind := fmt.Sprint(frames[guess-1].Module, frames[guess-1].Kind, ", ", frames[guess].Function)
		if kinds[kind] {
			t.Errorf("two stacks of one kind were saved: %s", kind)
		}
		kinds[kind] = true
	}
	t.Log(kinds)
	bad := 0
	for i := range r.Profile.Samples {
		if s := &r.Profile.Samples[i]; profile.CertaintyOf(s.End, s.Flags) >= profile.CertaintyHeuristic {
			bad++
		}
	}
	if len(kinds) < 2 {
		tooLittle("of %d samples, %d not complete, stacks of %d kinds were saved", len(r.Profile.Samples), bad, len(kinds))
	}
}

// No more files are written than are wanted.
func TestSaveBrokenIsBounded(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the program generates x86-64 code")
	}
	program := compile(t, "guesses", "-fno-omit-frame-pointer")
	tooLittle := fixture.Watch(t)
	dir := t.TempDir()
	log, said := messages()
	run(t, Options{Command: []string{program, "2"}, Log: log, SaveBroken: SaveBroken{Dir: dir, Files: 1}})
	switch n := len(saved(t, dir)); {
	case n > 1:
		t.Errorf("%d files", n)
	case n == 0 || !strings.Contains(said(), "after as many as are wanted"):
		tooLittle("%d files: %s", n, said())
	}
}

// Complete stacks are not saved, and the recording ends on time.
func TestSaveBrokenLeavesComplete(t *testing.T) {
	target := spin(t)
	dir := t.TempDir()
	log, said := messages()
	r := run(t, Options{PIDs: []int{target.Process.Pid}, Duration: 500 * time.Millisecond, Log: log, SaveBroken: SaveBroken{Dir: dir}})
	bad := 0
	for i := range r.Profile.Samples {
		if s := &r.Profile.Samples[i]; profile.CertaintyOf(s.End, s.Flags) >= profile.CertaintyHeuristic {
			bad++
		}
	}
	if n := len(saved(t, dir)); n > bad {
		t.Errorf("%d stacks were saved, %d of %d are not complete\n%s", n, bad, len(r.Profile.Samples), said())
	}
	if bad == 0 && !strings.Contains(said(), "0 stacks saved in "+dir+": all were complete") {
		t.Error(said())
	}
}

// Stacks that are not complete are of one kind if they have the same reason at the same place, whatever
// called function was on the CPU.
func TestBrokenKind(t *testing.T) {
	s := newSession(&Options{})
	defer s.close()
	p := &process{pid: 1}
	// node makes a stack; the outermost function is first.
	node := func(guessFrom int, functions ...string) uint32 {
		n := uint32(profile.RootNode)
		for i, name := range functions {
			f := profile.Frame{Func: s.b.Func(profile.Func{Name: name}), Kind: walk.KindNative}
			if i < guessFrom {
				f.Prov = walk.Heuristic
			}
			n = s.b.Node(n, s.b.Frame(f))
		}
		return n
	}
	kind := func(c profile.Certainty, node uint32) string { return s.brokenKind(p, c, c.String(), node) }
	guessed := kind(profile.CertaintyHeuristic, node(1, "main", "generated", "work", "leaf"))
	for _, c := range []struct {
		what string
		kind string
		same bool
	}{
		{"another leaf", kind(profile.CertaintyHeuristic, node(1, "main", "generated", "work", "other")), true},
		{"another guess", kind(profile.CertaintyHeuristic, node(1, "start", "generated", "work", "leaf")), false},
		{"a guess elsewhere", kind(profile.CertaintyHeuristic, node(2, "main", "generated", "work", "leaf")), false},
		{"guesses further out", kind(profile.CertaintyHeuristic, node(2, "start", "main", "generated", "work", "leaf")), true},
		{"another reason", kind(profile.CertaintyBroken, node(1, "main", "generated", "work", "leaf")), false},
	} {
		if (c.kind == guessed) != c.same {
			t.Errorf("%s: %q and %q", c.what, guessed, c.kind)
		}
	}
	if kind(profile.CertaintyTruncated, node(0, "a", "b")) != kind(profile.CertaintyTruncated, node(0, "c")) {
		t.Error("truncated stacks of a process are of several kinds")
	}
}
