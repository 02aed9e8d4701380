package suspend

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
)

// A stop that never comes is given up, and the thread that it was for runs on. This also holds if
// the sampling thread has no alarm, and if it may keep Go's P at first.
func TestStopThatNeverComes(t *testing.T) {
	prepareSignals()
	for _, patience := range []int32{-1, 0, 1} {
		t.Run(fmt.Sprintf("patience %d", patience), func(t *testing.T) {
			t.Parallel()
			neverStops(t, patience)
		})
	}
}

// neverStops waits for such a stop; a patience below zero means without an alarm.
func neverStops(t *testing.T, patience int32) {
	cmd := exec.Command("sleep", strconv.Itoa(600))
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	e := &Engine{opts: capture.Options{Period: time.Millisecond}}
	e.patience.Store(max(patience, 0))
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
		if patience >= 0 {
			if w.alarm.make(); !w.alarm.made {
				refused <- errors.New("the kernel makes no timer for a thread")
				return
			}
			defer w.alarm.delete()
		}
		if errno := seize(cmd.Process.Pid); errno != 0 {
			refused <- errno
			return
		}
		// The process is not asked to stop, so it does not.
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
			if left := e.patience.Load(); left != max(patience, 0) {
				t.Errorf("%d more may keep Go's processor afterwards, %d before", left, patience)
			}
			await(t, cmd.Process.Pid, 'S')
			return
		default:
		}
	}
	t.Error("the wait for a stop that never comes has not ended")
}

// A sampling thread that waits for its turn is woken whether tell is called before it waits, while
// it keeps Go's P, or after it gave that up.
func TestTurnIsTold(t *testing.T) {
	t.Parallel()
	for _, patience := range []int32{0, 1} {
		for _, after := range []time.Duration{-1, 0, laterWait / 2, 2 * shortRests * laterWait} {
			var stopping atomic.Bool
			var left atomic.Int32
			left.Store(patience)
			b := futexEvent{parks: make(chan struct{}, 1)}
			if after < 0 {
				b.tell()
			}
			done := make(chan struct{})
			go func() {
				b.wait(&stopping, &left)
				close(done)
			}()
			if after >= 0 {
				time.Sleep(after)
				b.tell()
			}
			select {
			case <-done:
			case <-time.After(2 * time.Minute):
				t.Fatalf("told %v after it began to wait, with patience %d, it waits on", after, patience)
			}
			if left.Load() != patience || b.state.Load() != 0 {
				t.Errorf("told after %v: patience %d of %d, state %d", after, left.Load(), patience, b.state.Load())
			}
		}
	}
}
