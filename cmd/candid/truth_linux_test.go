package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Whichever method of the chain is on top, all its callers are below it, however the program is
// run.
func TestCallersArePresent(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"default": nil, "interpreted": {"-Xint"}, "C1": {"-XX:TieredStopAtLevel=1"}, "frame pointers": {"-XX:+PreserveFramePointer"},
	} {
		t.Run(name, func(t *testing.T) {
			argv := append([]string{"record", "-q", "-F", "1500", "-o", "-", "--kinds", "--format", "collapsed", "--"}, chain(t, "2", flags...)...)
			all, whole := 0, 0
			kinds := map[string]int{}
			count := func(got string) {
				for _, s := range stacks(got) {
					at := slices.IndexFunc(s.frames, func(f string) bool { return strings.HasPrefix(f, "Chain.f1_[") })
					inChain := slices.ContainsFunc(s.frames, func(f string) bool {
						return strings.HasPrefix(f, "Chain.f") && strings.Contains(f, "_[")
					})
					if !inChain {
						continue
					}
					all += s.count
					good := at > 1 && strings.HasPrefix(s.frames[at-1], "Chain.run_[") && strings.HasPrefix(s.frames[at-2], "Chain.main_[")
					for i, f := range s.frames[max(at, 0):] {
						if !strings.HasPrefix(f, "Chain.") {
							break // an interrupt, or a stub of the VM
						}
						good = good && strings.HasPrefix(f, fmt.Sprintf("Chain.f%d_[", i+1))
						kinds[f[len(f)-2:len(f)-1]] += s.count
					}
					if good {
						whole += s.count
					} else {
						t.Logf("%d times %s", s.count, strings.Join(s.frames, ";"))
					}
				}
			}
			// On a busy machine the program may not run much in two seconds, and a single sample is
			// much among few.
			for tries := 0; tries < 10 && (all < 150 || all < 1000 && whole < all); tries++ {
				count(ok(t, argv...).out)
			}
			if all < 150 || float64(whole) < 0.995*float64(all) {
				t.Errorf("%d of %d samples have all their callers", whole, all)
			}
			want := map[string]string{"default": "j", "interpreted": "0", "C1": "1", "frame pointers": "j"}[name]
			total := 0
			for _, n := range kinds {
				total += n
			}
			t.Logf("%d of %d samples have all their callers; kinds of the frames: %v", whole, all, kinds)
			if 10*kinds[want] < 8*total {
				t.Errorf("kinds of the frames: %v, want most of them %s", kinds, want)
			}
		})
	}
}

// The program measures its own split of CPU time; the profile must agree, within what chance allows
// for so few samples.
func TestSharesAreTrue(t *testing.T) {
	t.Parallel()
	launcher, classes := java(t)
	c := exec.Command(launcher, "-cp", classes, "Truth", "4", "wait")
	target := start(t, c)
	target.wait(t, "ready")
	r := recorder(t, "-p", target.pid(), "-F", "1500", "-t")
	fmt.Fprintln(target.in)
	var truth map[string]float64
	last := ""
	for l := range target.lines {
		last = l
	}
	if err := json.Unmarshal([]byte(last), &truth); err != nil {
		t.Fatalf("%v: %q", err, last)
	}
	got := r.end(t, exitOK)
	seen := map[string]float64{}
	threads := map[string]bool{}
	all := 0.0
	for _, s := range stacks(got) {
		i := slices.Index(s.frames, "Truth.measured")
		if i < 0 {
			continue
		}
		threads[s.frames[0]] = true
		all += float64(s.count)
		if i+1 < len(s.frames) {
			phase := strings.TrimSuffix(strings.TrimPrefix(s.frames[i+1], "Truth$"), ".run")
			seen[phase] += float64(s.count)
		}
	}
	if len(threads) != 1 || !strings.HasPrefix(slices.Collect(maps.Keys(threads))[0], "[main tid=") {
		t.Errorf("the one thread is called %v", threads)
	}
	total := 0.0
	for _, ns := range truth {
		total += ns
	}
	if all < 500 {
		t.Fatalf("%v samples\n%s", all, r.errs.String())
	}
	distance := 0.0
	for phase, ns := range truth {
		want, is := ns/total, seen[phase]/all
		distance += math.Abs(want-is) / 2
		if math.Abs(want-is) > 0.005+4*math.Sqrt(want*(1-want)/all) {
			t.Errorf("%s: %.1f %% of the time, %.1f %% of %v samples", phase, 100*want, 100*is, all)
		}
	}
	t.Logf("%v samples, total variation distance %.2f %%", all, 100*distance)
	if distance > 0.05 {
		t.Errorf("total variation distance %.1f %%", 100*distance)
	}
	if n := samples(got, "Truth$Syscalls.run;"); n == 0 || samples(got, "do_syscall_64") == 0 {
		t.Errorf("%d samples of system calls, %d in the kernel", n, samples(got, "do_syscall_64"))
	}
}

// Java threads have their Java names, which are longer than the system's, and can be selected by
// them.
func TestThreadNames(t *testing.T) {
	t.Parallel()
	launcher, classes := java(t)
	target := start(t, exec.Command(launcher, "-cp", classes, "Ticks"))
	target.wait(t, "tick")
	args := []string{"record", "-q", "-F", "500", "-p", target.pid(), "-o", "-", "--format", "collapsed", "-t"}
	got := forEnough(t, func(r result) bool { // the thread main hardly works
		return samples(r.out, "[the worker tid=") > 0 && samples(r.out, "[main tid=") > 0
	}, args...).out
	if samples(got, "[the worker tid=") == 0 || samples(got, "[main tid=") == 0 {
		t.Errorf("threads:\n%s", got)
	}
	only := forEnough(t, sampled, append(args, "--thread", "^the worker$")...).out
	if n := samples(only, "[the worker tid="); n == 0 || n != samples(only, "") {
		t.Errorf("%d of %d samples are the chosen thread's", n, samples(only, ""))
	}
}

// Time in system calls shows the kernel's functions above the program's.
func TestKernelFrames(t *testing.T) {
	able(t)
	root(t)
	got := forEnough(t, func(r result) bool { return samples(r.out, "") >= 100 },
		"record", "-q", "-F", "500", "-p", program(t, "syscalls").pid(), "-o", "-", "--format", "collapsed", "--kinds").out
	in, below := 0, 0
	for _, s := range stacks(got) {
		k := slices.IndexFunc(s.frames, func(f string) bool { return strings.HasSuffix(f, "_[k]") })
		if k < 0 {
			continue
		}
		in += s.count
		if k > 0 && slices.ContainsFunc(s.frames[:k], func(f string) bool { return strings.Contains(f, "readZeros") }) {
			below += s.count
		}
	}
	if all := samples(got, ""); in < all/2 || below < in*9/10 {
		t.Errorf("%d of %d samples in the kernel, %d of them called from the program:\n%s", in, all, below, got)
	}
	if os.Geteuid() == 0 && samples(got, "read_zero") == 0 && samples(got, "read_iter_zero") == 0 && samples(got, "vfs_read") == 0 {
		t.Errorf("kernel functions have no names:\n%s", got)
	}
}

// Every engine sees the same program.
func TestEngines(t *testing.T) {
	launcher, classes := java(t)
	target := start(t, exec.Command(launcher, "-cp", classes, "Ticks"))
	target.wait(t, "tick")
	for _, name := range []string{"bpf", "perf", "perf-thread"} {
		t.Run(name, func(t *testing.T) {
			r := forEnough(t, func(r result) bool { return r.code != exitOK && sampled(r) || samples(r.out, "") >= 100 },
				"record", "-F", "500", "-p", target.pid(), "-o", "-", "--format", "collapsed", "--engine", name)
			if r.code == exitPermission {
				t.Skip(r.err)
			}
			all, work := samples(r.out, ""), samples(r.out, "Ticks.work")
			if r.code != exitOK || all < 8 || work < all*6/10 || samples(r.out, "[broken") > all/20 {
				t.Errorf("exit code %d, %d samples, %d of the work\n%s%s", r.code, all, work, r.out, r.err)
			}
		})
	}
	unharmed(t, target)
}
