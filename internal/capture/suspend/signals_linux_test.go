package suspend

import (
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fixture"
)

// A stop that never comes is given up, and the thread that it was for runs on.
func TestStopThatNeverComes(t *testing.T) {
	cmd := exec.Command("sleep", strconv.Itoa(600))
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	prepareSignals()
	e := &Engine{}
	l := &cpuSampler{e: e}
	w := &worker{cpuSampler: l}
	l.all, e.list = []*worker{w}, []*cpuSampler{l}
	type outcome struct {
		s  stop
		ok bool
	}
	done := make(chan outcome, 1)
	refused := make(chan error, 1)
	go onOwnThread(func() {
		w.thread.Store(int32(unix.Gettid()))
		if errno := seize(cmd.Process.Pid); errno != 0 {
			refused <- errno
			return
		}
		// It is not asked to stop, so it does not.
		s, ok := w.await(&pick{tid: cmd.Process.Pid})
		done <- outcome{s, ok}
	})
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(roundEvery) {
		e.remind(clock())
		select {
		case err := <-refused:
			t.Skip(err)
		case o := <-done:
			if o.ok {
				t.Errorf("there was a stop: %+v", o.s)
			}
			await(t, cmd.Process.Pid, 'S')
			return
		default:
		}
	}
	t.Error("the wait for a stop that never comes has not ended")
}
