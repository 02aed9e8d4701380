package snapshot

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/outfile"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/target"
)

// sleeper starts a program that sleeps.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// broken returns a capture of a process that executes what is no code.
func broken(pid int) *capture.Snapshot {
	return &capture.Snapshot{PID: uint32(pid), TID: uint32(pid) + 1, Regs: cpu.Registers{Arch: cpu.Host(), PC: 0x10}, Kernel: []uint64{0xffffffff81234567, 0xffffffff81001234}, StackAddr: 0x7fff0000, Stack: []byte("a secret of 24 bytes....")}
}

// save saves a stack and waits until that is done.
func save(t *testing.T, s *Saver, c *capture.Snapshot, kind string) {
	t.Helper()
	p, err := target.Open(int(c.PID))
	if err != nil {
		t.Fatal(err)
	}
	s.Save(p, c, kind, "as a test")
	await(s)
}

func await(s *Saver) {
	s.mu.Lock()
	now := s.now
	s.mu.Unlock()
	if now != nil {
		<-now.done
	}
}

func saver(t *testing.T, dir string, most int) *Saver {
	t.Helper()
	s, err := NewSaver(dir, most)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// A stack of each kind is saved, as many as are wanted, in files of their own that only candid's user
// may read and that are replayed with the same result.
func TestSaver(t *testing.T) {
	dir := t.TempDir()
	pid := sleeper(t).Process.Pid
	s := saver(t, dir, 2)
	for _, kind := range []string{"one", "one", "two", "three", "three"} {
		if s.Wants(kind) {
			save(t, s, broken(pid), kind)
		}
	}
	said := s.End(0)
	list := names(t, dir)
	if len(list) != 2 || !strings.Contains(said, "2 stacks saved in "+dir+"; not saved: 1 like one that was saved, 2 after as many as are wanted") {
		t.Fatalf("%q: %s", list, said)
	}
	for _, name := range list {
		if !regexp.MustCompile(`^candid-broken-\d+-\d+-[12]\.snapshot$`).MatchString(name) {
			t.Errorf("a file is called %s", name)
		}
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
			t.Errorf("%s has mode %v (%v)", name, st.Mode(), err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		snaps, err := Decode(b)
		if err != nil || len(snaps) != 1 {
			t.Fatalf("%s: %d snapshots, %v", name, len(snaps), err)
		}
		snap := snaps[0]
		if snap.Note != "as a test" || snap.Want.Certainty() < profile.CertaintyHeuristic || string(snap.Capture.Stack) != "a secret of 24 bytes...." {
			t.Errorf("%s: %s, %v, stack %q", name, snap.Note, snap.Want, snap.Capture.Stack)
		}
		if !slices.Equal(snap.Capture.Kernel, []uint64{0, 0}) {
			t.Errorf("%s holds addresses of the kernel: %#x", name, snap.Capture.Kernel)
		}
		if got, err := snap.Replay(); err != nil || !got.Equal(snap.Want) {
			t.Errorf("%s: a replay has another result: %v\n%s", name, err, snap.Want.Diff(got))
		}
	}
}

// Files of earlier recordings stay as they are.
func TestSaverReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	pid := sleeper(t).Process.Pid
	for range 2 {
		s := saver(t, dir, 20)
		save(t, s, broken(pid), "one")
		if said := s.End(0); !strings.HasPrefix(said, "1 stack saved") {
			t.Error(said)
		}
		for _, name := range names(t, dir) {
			path := filepath.Join(dir, name)
			if st, err := os.Stat(path); err != nil || st.Size() == 0 {
				t.Error(err)
			} else if err := os.WriteFile(path, []byte("an earlier one"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := names(t, dir); len(got) != 2 {
		t.Errorf("there are %q", got)
	}
}

// What is complete when it is walked again is not saved, and a stack of a process that has ended or of a
// recording that has ended neither. The reason is given, and stacks of a kind are not tried for ever.
func TestSaverSavesNothing(t *testing.T) {
	dir := t.TempDir()
	cmd := sleeper(t)
	pid := cmd.Process.Pid
	s := saver(t, dir, 20)
	whole := broken(pid)
	whole.Flags |= capture.NoUser
	for range 5 {
		if s.Wants("whole") {
			save(t, s, whole, "whole")
		}
	}
	if s.tries != maxTries {
		t.Errorf("a stack that is complete was walked %d times, not %d", s.tries, maxTries)
	}
	p, err := target.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	s.Save(p, broken(pid), "ended", "as a test")
	await(s)
	said := s.End(0)
	if want := "0 stacks saved in " + dir + "; not saved: 1 of processes that had ended, 5 complete when walked again"; said != want {
		t.Errorf("%s, not %s", said, want)
	}
	if s.Wants("another") {
		t.Error("a stack is wanted when the recording has ended")
	}
	if p, err = target.Open(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	s.Save(p, broken(os.Getpid()), "another", "as a test")
	await(s)
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("there are %q", got)
	}
	if said := saver(t, dir, 20).End(0); said != "0 stacks saved in "+dir+": all were complete" {
		t.Error(said)
	}
}

// The end of a recording waits no longer than it is told to, and nothing is written after it.
func TestSaverEnds(t *testing.T) {
	dir := t.TempDir()
	s := saver(t, dir, 20)
	held := make(chan struct{})
	s.mu.Lock()
	s.now = &saving{done: held, end: func() {}, hurry: func() {}}
	s.mu.Unlock()
	began := time.Now()
	said := s.End(50 * time.Millisecond)
	if took := time.Since(began); took < 50*time.Millisecond || took > 5*time.Second {
		t.Errorf("it waited for %v", took)
	}
	if !strings.Contains(said, "1 unfinished when the recording ended") {
		t.Error(said)
	}
	if err := s.write(1, 1, []byte("x")); !errors.Is(err, errOver) {
		t.Errorf("after the end: %v", err)
	}
	close(held)
	s.dir.Close()
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("there are %q", got)
	}
}

// A directory that is not there or in which others may exchange files is refused.
func TestSaverNeedsDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := NewSaver(filepath.Join(dir, "not"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := NewSaver(dir, 1); !errors.Is(err, outfile.ErrOthers) {
		t.Errorf("everybody's: %v", err)
	}
}

// Symbols that name nothing are left out of a file's tables, whatever these hold.
func TestKeepSymbolsOfAnything(t *testing.T) {
	syms := make([]byte, 2*symbolSize)
	for i := range symbolSize {
		syms[i] = 0xff
	}
	text := []byte("\x00name without an end")
	kept, names := keepSymbols(slices.Clone(syms), text, []uint64{0, 1, 1, ^uint64(0)}, true)
	if len(kept) != len(syms) || len(names) != len(text) {
		t.Errorf("%d and %d bytes", len(kept), len(names))
	}
}
