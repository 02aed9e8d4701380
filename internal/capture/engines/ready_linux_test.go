package engines

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
)

// waiterSource executes another program at a line of input, which works for a while and says so.
const waiterSource = `
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
  if (argc > 1) {
    while (clock() < CLOCKS_PER_SEC / 5);
    printf("worked\n"); fflush(stdout);
    getchar();
    return 0;
  }
  printf("ready\n"); fflush(stdout);
  char c;
  read(0, &c, 1);
  execl("/proc/self/exe", "waiter", "work", (char *)0);
}`

// A program that is released when the engine is ready is sampled from its first instruction on.
func TestReady(t *testing.T) {
	bin := fixture.C(t, waiterSource)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			p := start(t, bin)
			opts := options(1000, p.PID())
			asked, told := 0, 0
			opts.Sampling = func() {
				if told++; asked != 0 {
					t.Error("Sampling was called after Ready")
				}
			}
			var until uint64
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			opts.Ready = func() error {
				asked++
				_, _ = p.Write([]byte("\n"))
				if line := p.Line(); line != "worked" {
					t.Errorf("the program says %q", line)
				}
				var now unix.Timespec
				err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
				until = uint64(now.Nano())
				cancel()
				return err
			}
			e := open(t, opts, name)
			r := newRecorder()
			var times []uint64 // some may come before Ready returns
			r.look = func(s *capture.Snapshot) { times = append(times, s.Time) }
			tooLittle := fixture.Watch(t)
			if err := e.Run(ctx, r); err != nil {
				t.Fatal(err)
			}
			during := 0
			for _, at := range times {
				if at < until {
					during++
				}
			}
			t.Logf("%d samples, %d of them before Ready returned", r.samples, during)
			if asked != 1 || told != 1 {
				t.Errorf("Ready was called %d times, Sampling %d times", asked, told)
			}
			if during == 0 {
				tooLittle("%d samples of %d were taken before Ready returned", during, r.samples)
			}
		})
	}
}

// What a program does from Sampling on is sampled.
func TestSampling(t *testing.T) {
	bin := fixture.C(t, waiterSource)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			p := start(t, bin)
			opts := options(1000, p.PID())
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			told := 0
			opts.Sampling = func() {
				told++
				_, _ = p.Write([]byte("\n"))
				if line := p.Line(); line != "worked" {
					t.Errorf("the program says %q", line)
				}
				cancel()
			}
			r := newRecorder()
			tooLittle := fixture.Watch(t)
			if err := open(t, opts, name).Run(ctx, r); err != nil {
				t.Fatal(err)
			}
			if told != 1 {
				t.Errorf("Sampling was called %d times", told)
			}
			if r.samples < 50 {
				tooLittle("%d samples of 200 ms", r.samples)
			}
		})
	}
}

// An error that Ready returns ends Run.
func TestNotReady(t *testing.T) {
	bin := fixture.C(t, waiterSource)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			opts := options(1000, start(t, bin).PID())
			wrong := errors.New("not now")
			opts.Ready = func() error { return wrong }
			if err := open(t, opts, name).Run(context.Background(), newRecorder()); !errors.Is(err, wrong) {
				t.Errorf("%v", err)
			}
		})
	}
}
