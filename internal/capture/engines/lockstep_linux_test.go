package engines

import (
	"math"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// timersSource has a thread for each of the periods 4, 5, 10 and 20 ms at three phases, each busy
// for four percent of its period.
const timersSource = `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static long at(clockid_t c) { struct timespec t; clock_gettime(c, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static long period[12], phase[12];
static void *task(void *arg) {
  long i = (long)arg;
  long next = at(CLOCK_MONOTONIC) / 20000000 * 20000000 + 40000000 + phase[i];
  for (;;) {
    struct timespec t = { next / 1000000000L, next % 1000000000L };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
    long end = at(CLOCK_THREAD_CPUTIME_ID) + period[i] / 25;
    while (at(CLOCK_THREAD_CPUTIME_ID) < end);
    long now = at(CLOCK_MONOTONIC);
    do next += period[i]; while (next < now);
  }
}
int main() {
  static const long periods[] = { 4000000, 5000000, 10000000, 20000000 };
  for (long i = 0; i < 12; i++) {
    period[i] = periods[i / 3]; phase[i] = period[i] * (i % 3) / 3;
    pthread_t t; pthread_create(&t, 0, task, (void *)i);
  }
  printf("ready\n"); fflush(stdout);
  for (;;) { struct timespec t = { 100, 0 }; nanosleep(&t, 0); }
}`

func TestTimersGetTheirTrueShare(t *testing.T) {
	bin := fixture.C(t, timersSource)
	for _, hz := range []float64{100, 250, 1000} {
		// A thread runs for a 25th of the time. In 8 s at 100 Hz it has 32 samples, 4 s at 250 Hz
		// and 3 s at 1000 Hz are 40 and 120: a thread that is in lockstep, and has none of its
		// samples or twice as many, is 5.6 standard deviations off or more.
		long := map[float64]time.Duration{100: 8 * time.Second, 250: 4 * time.Second, 1000: 3 * time.Second}[hz]
		if fixture.Full(t) {
			long = 8 * time.Second
		}
		p := start(t, bin)
		pid := p.PID()
		time.Sleep(100 * time.Millisecond)
		e := open(t, options(hz, pid), "auto")
		r := newRecorder()
		before := threadTimes(t, pid)
		record(t, e, r, long)
		after := threadTimes(t, pid)
		// A thread counts a 25th of its period itself. The kernel's account also has the way to
		// sleep and back, some ten µs each time and more on a slow machine, of which the timer sees
		// little: the true value lies between the two.
		itself := float64(long) / 25
		off := func(got, least, most, deviation float64) float64 {
			return max(got-most, 0)/deviation + min(got-min(least, most), 0)/deviation
		}
		worst, cpuAll, gotAll := 0.0, 0.0, 0.0
		for tid, end := range after {
			cpu, got := float64(end-before[tid]), float64(r.weight[tid])
			if int(tid) == pid {
				continue
			}
			cpuAll, gotAll = cpuAll+cpu, gotAll+got
			z := off(got, itself, cpu, math.Sqrt(cpu*1e9/hz))
			worst = math.Max(worst, math.Abs(z))
			if math.Abs(z) > 4.5 {
				t.Errorf("%g Hz: thread %d has %.1f ms of %.1f, %.1f deviations", hz, tid, got/1e6, cpu/1e6, z)
			}
		}
		z := off(gotAll, 12*itself, cpuAll, math.Sqrt(cpuAll*1e9/hz))
		t.Logf("%g Hz: all %.1f ms of %.1f (%.1f deviations), worst thread %.1f deviations", hz, gotAll/1e6, cpuAll/1e6, z, worst)
		if math.Abs(z) > 4 {
			t.Errorf("%g Hz: all threads have %.1f ms of %.1f", hz, gotAll/1e6, cpuAll/1e6)
		}
		_ = p.Cmd.Process.Kill()
		_ = e.Close()
	}
}
