package bpfcopy

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	places "github.com/candid-profiler/candid/internal/capture/procsyscall"
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

// Threads that slept when recording began are reported soon, however many there are and however
// rarely each is reported later.
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
	// If each thread were reported only when its turn comes, that would take longer than this.
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

const lateSource = `
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>
int main() {
	cpu_set_t one;
	CPU_ZERO(&one);
	int cpu = sched_getcpu();
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one)) return 1;
	pid_t parent = getpid();
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent) return 0;
		for (;;) { for (volatile int i = 0; i < 40000000; i++); usleep(1000); }
	}
	struct sched_param none = {0};
	if (sched_setscheduler(0, SCHED_IDLE, &none)) return 1;
	puts("ready"); fflush(stdout);
	for (;;) usleep(20000);
}
`

// A sleep ends when the wait for a CPU begins, not when that wait ends.
func TestSleepEndsBeforeWait(t *testing.T) {
	p := fixture.Start(t, exec.Command(compile(t, lateSource)))
	p.Line()
	opts := cpuOptions(1000, p.PID())
	opts.Events = []capture.Event{{Name: "wall", Kind: capture.Wall, Unit: "nanoseconds"}}
	e := open(t, opts, Auto)
	// It often waits for a CPU that another process keeps busy for tens of ms.
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	r := newRecorder()
	var waits, wrong int
	var slept uint64 // when the last sleep ended
	r.look = func(s *capture.Snapshot) {
		switch begin := s.Time - s.Weight; {
		case s.State == capture.Runnable && s.Weight > uint64(opts.Period):
			if waits++; slept > begin {
				wrong++
			}
			if waits == 10 {
				stop()
			}
		case s.State >= capture.Sleeping:
			slept = s.Time
		}
	}
	if err := e.Run(ctx, r); err != nil {
		t.Fatal(err)
	}
	if waits < 10 || wrong > 0 {
		t.Errorf("of %d waits for a CPU %d began before the sleep had ended", waits, wrong)
	}
}
