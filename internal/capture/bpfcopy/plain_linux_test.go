package bpfcopy

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
)

// The kernel wakes the reader when a program begins or ends, but not for one whose code
// is known to be all in files.
func TestPlainProgramsWakeNobody(t *testing.T) {
	for _, plain := range []bool{false, true} {
		dir := t.TempDir()
		cmd, release := startGated(t, "for i in 1 2 3 4 5; do "+truePath(t)+"; done; echo > "+dir+"/done; read more")
		e := open(t, capture.Options{PIDs: []int{cmd.Process.Pid}, Children: true, Period: 10 * time.Millisecond, Events: cpuOptions(99).Events}, Auto)
		var st syscall.Stat_t
		if err := syscall.Stat(truePath(t), &st); err != nil {
			t.Fatal(err)
		}
		dev := uint64(st.Dev>>8&0xfff)<<20 | uint64(st.Dev&0xff|st.Dev>>12&0xfff00)
		if err := e.Plain(dev, st.Ino, plain); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx, newRecorder()) }()
		release()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the script did not end within 30 s")
			}
		}
		var woken uint64
		if err := e.progs.coll.Variables["woken"].Get(&woken); err != nil {
			t.Fatal(err)
		}
		if plain == (woken != 0) {
			t.Errorf("plain %v: the reader was last woken at %d", plain, woken)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// truePath returns the path of a program that does nothing, without symbolic links.
func truePath(t *testing.T) string {
	t.Helper()
	path, err := filepath.EvalSymlinks("/bin/true")
	if err != nil {
		t.Skip(err)
	}
	return path
}

// waker is a sink that wants the notices of one process at once.
type waker struct {
	*recorder
	wants uint32
}

func (w *waker) Prompt(n *capture.ProcessEvent) bool { return n.PID == w.wants }

// The walker is woken for what the Sink wants at once, and not for everything that the reader is
// woken for.
func TestPromptWakesTheWalker(t *testing.T) {
	e := &Engine{kept: newBacklog(maxHeld), prompter: &waker{wants: 7}, sampled: true}
	defer e.kept.close()
	for _, c := range []struct {
		pid  uint32
		want bool
	}{{6, false}, {7, true}} {
		b := &batch{maps: []capture.ProcessEvent{{Kind: capture.Mmap, PID: c.pid}}}
		b.items = []item{{note: 0}}
		e.prompted = false
		if e.prompt(b, b.items); e.prompted != c.want {
			t.Errorf("process %d: %v", c.pid, e.prompted)
		}
	}
	// The first sample is always wanted at once, and a Sink that is not a Prompter wants everything
	// at once.
	first := []item{{data: []byte{kindSample}}}
	e.prompted, e.sampled = false, false
	e.prompt(&batch{}, first)
	if !e.prompted {
		t.Error("the first sample can wait")
	}
	e.prompted = false
	if e.prompt(&batch{}, first); e.prompted {
		t.Error("each sample is wanted at once")
	}
	e.prompter = nil
	if e.prompt(&batch{}, nil); !e.prompted {
		t.Error("a sink that does not say can wait")
	}
}
