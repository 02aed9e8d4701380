package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
	"github.com/candid-profiler/candid/internal/target"
)

// hits starts a program that allocates a known number of times for each line
// that it reads.
func hits(t testing.TB) *running {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "hits")
	if out, err := exec.Command("cc", "-O1", "-g", "-o", exe, "../../internal/record/testdata/hits.c").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	r := start(t, exec.Command(exe, "again"))
	r.wait(t, "round")
	return r
}

func (r *running) again(t testing.TB) {
	t.Helper()
	if _, err := r.in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	r.wait(t, "round")
}

// codeOf reads the first bytes of a process's malloc.
func codeOf(t testing.TB, pid int) []byte {
	t.Helper()
	place, err := perfevent.FindPlace(pid, capture.Place{Library: "libc.so.6", Function: "malloc"})
	if err != nil {
		t.Fatal(err)
	}
	place.File.Close()
	p, err := target.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	maps, err := p.Mappings()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if filepath.Base(m.Path) == "libc.so.6" && m.Perm&target.PermExec != 0 && place.Offset >= m.Offset && place.Offset < m.Offset+m.End-m.Start {
			b := make([]byte, 16)
			local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
			remote := []unix.RemoteIovec{{Base: uintptr(m.Start + place.Offset - m.Offset), Len: len(b)}}
			if n, err := unix.ProcessVMReadv(pid, local, remote, 0); n != len(b) || err != nil {
				t.Fatalf("read %d bytes: %v", n, err)
			}
			return b
		}
	}
	t.Fatal("malloc is not mapped")
	return nil
}

// A probe is in the target only, and is removed when candid ends, however it ends.
func TestProbeLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	able(t)
	root(t)
	probed, other := hits(t), hits(t)
	before := codeOf(t, probed.Process.Pid)
	for _, end := range []string{"killed", "interrupted"} {
		r := recorder(t, "-e", "uprobe:libc.so.6:malloc", "-p", probed.pid())
		probed.again(t)
		other.again(t)
		if now := codeOf(t, probed.Process.Pid); bytes.Equal(now, before) {
			t.Error("no probe was put in")
		}
		if now := codeOf(t, other.Process.Pid); !bytes.Equal(now, before) {
			t.Errorf("another process's malloc begins with %x, not %x", now, before)
		}
		if end == "killed" {
			r.Process.Kill()
			r.Wait()
		} else {
			r.Process.Signal(unix.SIGINT)
			if got := samples(r.end(t, 0), "allocate_many"); got != 4000 {
				t.Errorf("%d calls of malloc from allocate_many, not 4000", got)
			}
		}
		await(t, "the kernel to take the probe out", func() bool { return bytes.Equal(codeOf(t, probed.Process.Pid), before) })
		probed.again(t)
	}
}
