package bpfcopy

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	places "github.com/candid-profiler/candid/internal/capture/asleep"
	"github.com/candid-profiler/candid/internal/fixture"
)

const waitSource = `
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>
static sem_t there;
static void *wait_for_ever(void *arg) { sem_post(&there); for (;;) pause(); return arg; }
int main() {
	pthread_t t;
	for (int i = 0; i < 100; i++) if (pthread_create(&t, 0, wait_for_ever, 0)) return 1;
	for (int i = 0; i < 100; i++) while (sem_wait(&there));
	puts("ready"); fflush(stdout);
	for (;;) pause();
}
`

// Threads that slept when recording began are told of soon, however many they are and
// however seldom each is told of later.
func TestSleepersAreToldOfAtOnce(t *testing.T) {
	p := fixture.Start(t, exec.Command(compile(t, waitSource)))
	p.Line()
	for tid := range threadTimes(t, p.PID()) {
		for place, ok := places.Of(p.PID(), tid); !ok || place.Running; place, ok = places.Of(p.PID(), tid) {
			time.Sleep(time.Millisecond)
		}
	}
	opts := cpuOptions(99, p.PID())
	opts.Events = []capture.Event{{Name: "wall", Kind: capture.Wall, Unit: "nanoseconds"}}
	opts.Tell, opts.TellMost = time.Second, 1
	e := open(t, opts, Auto)
	// That none is told of until its turn comes would take longer than this.
	ctx, stop := context.WithTimeout(context.Background(), 80*time.Second)
	defer stop()
	r := newRecorder()
	r.look = func(s *capture.Snapshot) {
		if s.State < capture.Sleeping {
			delete(r.byTID, s.TID)
		} else if len(r.byTID) > 100 {
			stop()
		}
	}
	if err := e.Run(ctx, r); err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != context.Canceled {
		t.Error("not all threads were told of before recording ended")
	}
}
