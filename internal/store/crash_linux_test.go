package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// TestMain lets the test's binary be the process that is killed while it writes.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CANDID_STORE_KILLED"); dir != "" {
		w, err := Create(dir, Options{})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		rnd := rand.New(rand.NewPCG(42, 1))
		for i := range 100_000 {
			at := noon.Add(time.Duration(i) * time.Second)
			p := made(rnd, at, 4+i, 100)
			if err := w.Append(p, serviceOf(p), at, at.Add(time.Second)); err != nil {
				os.Exit(1)
			}
			fmt.Println(i)
		}
	}
	os.Exit(m.Run())
}

// A process that is killed at any time while it writes leaves everything that it had appended, and a
// store to which the next one appends.
func TestKilledWriter(t *testing.T) {
	times := 3
	if fixture.Full(t) {
		times = 40
	}
	dir := t.TempDir()
	for i := range times {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "CANDID_STORE_KILLED="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var last int
		for n := -1; n < 3+i%5; {
			if _, err := fmt.Fscanln(out, &n); err != nil {
				t.Fatal(err)
			}
			last = n
		}
		time.Sleep(time.Duration(i%7) * time.Millisecond)
		_ = cmd.Process.Kill()
		for n := 0; ; last = n {
			if _, err := fmt.Fscanln(out, &n); err != nil {
				break
			}
		}
		_ = cmd.Wait()
		p, r := everything(t, dir)
		if d := r.Damage(); len(d) > 0 {
			t.Errorf("damage: %q", d)
		}
		// The blocks of this run, and one more that was not told.
		rnd := rand.New(rand.NewPCG(42, 1))
		want := map[string]total{}
		got := totals(p, map[string]total{})
		ok := false
		for k := 0; k <= last+1; k++ {
			totals(made(rnd, noon.Add(time.Duration(k)*time.Second), 4+k, 100), want)
			ok = k >= last && maps.Equal(got, want) || ok
		}
		if !ok {
			t.Fatalf("after %d profiles were appended the store has others", last+1)
		}
		if err := os.RemoveAll(filepath.Join(dir, dayOf(noon))); err != nil {
			t.Fatal(err)
		}
	}
}

// On a disk that is full nothing that was stored is lost, and writing goes on when there is space.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	rnd := rand.New(rand.NewPCG(13, 1))
	w := create(t, dir, Options{})
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 300<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]total{}
	failed, after := 0, 0
	for i := 0; failed < 3 || after < 20; i++ {
		at := noon.Add(time.Duration(i) * 30 * time.Second)
		p := made(rnd, at, 20+i, 1000)
		switch err := w.Append(p, serviceOf(p), at, at.Add(30*time.Second)); {
		case err == nil:
			totals(p, want)
			if failed > 0 {
				after++
			}
		case !errors.Is(err, syscall.ENOSPC):
			t.Fatal(err)
		default:
			if failed++; failed == 3 {
				if err := os.Remove(filler); err != nil {
					t.Fatal(err)
				}
			}
		}
		if i > 1000 {
			t.Fatal("the disk never was full")
		}
	}
	p, r := everything(t, dir)
	if !maps.Equal(totals(p, map[string]total{}), want) || len(r.Damage()) > 0 {
		t.Errorf("what was appended without an error is not there; %q", r.Damage())
	}
}
