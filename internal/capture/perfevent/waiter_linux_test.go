package perfevent

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fixture"
)

// forever is how long a Waiter sleeps that is not woken. Wait sleeps for as long as it is asked to,
// and returns at once when there is a reason to.
const forever = 2 * time.Minute

func TestWaiter(t *testing.T) {
	w, err := NewWaiter()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if w.raw == nil {
		t.Error("the runtime does not poll for it")
	}
	begin := time.Now()
	if gone, err := w.Wait(30 * time.Millisecond); err != nil || len(gone) > 0 {
		t.Fatal(gone, err)
	}
	if d := time.Since(begin); d < 29*time.Millisecond {
		t.Errorf("it slept %v", d)
	}

	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := w.Add(fd); err != nil {
		t.Fatal(err)
	}
	// The event comes before and during the sleep, again and again: no edge is lost.
	for i := range 20 {
		wake := func() { _, _ = unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }
		if i%2 == 0 {
			wake()
		} else {
			time.AfterFunc(5*time.Millisecond, wake)
		}
		begin = time.Now()
		if _, err := w.Wait(forever); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begin); d >= forever {
			t.Fatalf("wake %d came after %v", i, d)
		}
	}

	cmd := exec.Command("sleep", "0.05")
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	if err := w.AddProcess(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	gone, err := w.Wait(forever)
	if err != nil || len(gone) != 1 || gone[0] != cmd.Process.Pid {
		t.Errorf("ended: %v, %v", gone, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer w.WakeOn(ctx)()
	time.AfterFunc(5*time.Millisecond, cancel)
	begin = time.Now()
	if _, err := w.Wait(forever); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begin); d >= forever {
		t.Errorf("the context's end was seen after %v", d)
	}
}
