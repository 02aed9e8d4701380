package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/dump"
	"github.com/candid-profiler/candid/internal/fixture"
)

// On a terminal, dump shows every thread of a Java program, as often as requested, and Ctrl-C ends
// it.
func TestDump(t *testing.T) {
	t.Parallel()
	launcher, classes := java(t)
	// On a machine with one CPU or little memory the VM would choose a collector without threads.
	target := start(t, exec.Command(launcher, "-cp", classes, "-XX:+UseG1GC", "Ticks"))
	target.wait(t, "tick")
	d := drawOf(t, command(t, "dump", "-p", target.pid(), "--thread", "^main$|^GC Thread"), 120, 60, nil)
	d.sees(`process ` + target.pid() + `, hotspot 17\.[0-9.]+, \d+ threads: .*java -cp`)
	d.sees(`"main" #1 prio=5 tid=\d+ cpu=[\d.]+m?s .*\n   java.lang.Thread.State: [A-Z_]+`)
	d.sees(`(?s)"GC Thread#0" gc tid=\d+ .* sleeping in futex\n.*\tat |GC Thread#0`)
	d.sees(`at Ticks\.main\(Ticks\.java:\d+\) \[(interpreted|C1|C2)\]`)
	text := d.sees(`\d threads shown of \d+ in [\d.]+ ms`)
	if strings.Contains(text, "Signal Dispatcher") {
		t.Errorf("a thread that was not asked for:\n%s", text)
	}
	d.ends(exitOK)

	again := drawOf(t, command(t, "dump", "-p", target.pid(), "--thread", "^main$", "--repeat", "1000", "--interval", "50ms"), 120, 60, nil)
	again.sees(`(?s)1 thread shown .*1 thread shown `)
	again.press("\x03")
	again.ends(exitOK)
	unharmed(t, target)
}

func TestDumpJSON(t *testing.T) {
	launcher, classes := java(t)
	// With a fixed number of compiler threads none of them ends while it is examined.
	target := start(t, exec.Command(launcher, "-XX:-UseDynamicNumberOfCompilerThreads", "-cp", classes, "Ticks"))
	target.wait(t, "tick")
	other := program(t, "unbroken", "GODEBUG=asyncpreemptoff=1", "GOGC=off")
	// A running thread is given up after half a second if it does not get a CPU to stop on.
	for begin := time.Now(); time.Since(begin) < patience; {
		if dumpJSON(t, target, other) > 0 {
			unharmed(t, target)
			return
		}
	}
	t.Error("no thread of the busy program was stopped")
}

// dumpJSON dumps a Java program and a busy one three times, and returns how often a thread of the
// busy one was stopped.
func dumpJSON(t *testing.T, target, other *running) (stopped int) {
	t.Helper()
	r := ok(t, "dump", "-p", target.pid(), "-p", other.pid(), "--json", "--repeat", "3", "--interval", "1ms")
	dec := json.NewDecoder(strings.NewReader(r.out))
	for n := range 3 {
		var look dump.Dump
		if err := dec.Decode(&look); err != nil {
			t.Fatalf("look %d: %v", n, err)
		}
		if look.Schema != "candid.dump/1" || len(look.Processes) != 2 || look.Time.IsZero() {
			t.Fatalf("%+v", look)
		}
		i := slices.IndexFunc(look.Processes, func(p dump.Process) bool { return fmt.Sprint(p.PID) == target.pid() })
		p, q := look.Processes[i], look.Processes[1-i]
		main := slices.IndexFunc(p.Threads, func(t dump.Thread) bool { return t.Name == "main" })
		if main < 0 || p.Threads[main].Java == nil || p.Threads[main].Java.ID != 1 || p.Threads[main].Kind != "java" || len(p.Threads) != p.Count || !strings.HasPrefix(p.Runtime, "hotspot 17") {
			t.Errorf("%+v", p)
		}
		// Whether a thread is running at the moment of the dump depends on the machine.
		mute := slices.ContainsFunc(q.Threads, func(t dump.Thread) bool { return t.Read == dump.ReadNot && t.Error == "" })
		if stopped += q.Stops.Count; mute || q.Stops.Count > 0 && q.Stops.MedianUS <= 0 {
			t.Errorf("a thread of the busy program was not read and does not say why, or was stopped for no time: %+v, %+v", q.Stops, q.Threads)
		}
	}
	return stopped
}

// Output that people paste into a ticket contains none of the program's passwords.
func TestCommandsAreMasked(t *testing.T) {
	launcher, classes := java(t)
	target := start(t, exec.Command(launcher, "-Ddb.password=hunter2", "-cp", classes, "Ticks", "--token", "hunter2", "jdbc:x://h/db?user=me&password=hunter2&a=b"))
	target.wait(t, "tick")
	for _, args := range [][]string{{"dump", "-p", target.pid()}, {"dump", "-p", target.pid(), "--json"}, {"ps", "Ticks"}, {"ps", "--json", "Ticks"}, {"doctor", "-p", target.pid(), "--json"}} {
		out := strings.ReplaceAll(ok(t, args...).out, `\u0026`, "&")
		if strings.Contains(out, "hunter2") || !strings.Contains(out, "Ticks --token *** jdbc:x://h/db?user=me&password=***&a=b") || !strings.Contains(out, "-Ddb.password=*** -cp") {
			t.Errorf("%q prints\n%s", args, out)
		}
	}
}

func TestDumpRefusals(t *testing.T) {
	able(t)
	for _, c := range []struct {
		code  int
		args  []string
		words []string
	}{
		{exitUsage, []string{"dump"}, []string{"-p PID"}},
		{exitUsage, []string{"dump", "-p", "x"}, []string{`"x" is not a process id`}},
		{exitUsage, []string{"dump", "-p", "1", "--repeat", "0"}, []string{"--repeat"}},
		{exitUsage, []string{"dump", "-p", "1", "--thread", "("}, []string{"--thread"}},
		{exitUsage, []string{"dump", "-p", "1", "--async-time", "1s"}, []string{"--async-time", "--async, which is not given"}},
		{exitUsage, []string{"dump", "-p", "1", "--async-bytes", "1G"}, []string{"--async-bytes", "--async, which is not given"}},
		{exitUsage, []string{"dump", "-p", "1", "--async", "--async-bytes", "x"}, []string{"--async-bytes", "512M"}},
		{exitUsage, []string{"dump", "-p", "1", "--async", "--async-time", "0s"}, []string{"--async-time"}},
		{exitNoTarget, []string{"dump", "-p", strconv.Itoa(1<<31 - 1)}, []string{"2147483647"}},
	} {
		candid(t, c.args...).refused(t, c.code, c.words...)
	}
	target := program(t, "idle")
	if r := ok(t, "dump", "-p", target.pid(), "--async"); !strings.Contains(r.out, "note: asynchronous methods are looked for in programs of .NET 9 and 10 only") {
		t.Errorf("--async of a program that is none of .NET's:\n%s", r.out)
	}
	root(t)
	stranger := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", binary, "dump", "-p", target.pid())
	stranger.Dir = "/"
	finish(t, stranger).refused(t, exitPermission, target.pid())
}

// An ordinary user dumps a program of their own.
func TestDumpUnprivileged(t *testing.T) {
	able(t)
	root(t)
	nobody := []string{"--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"}
	sleep := exec.Command("setpriv", append(nobody, "sleep", "60")...)
	sleep.Dir = "/"
	if err := fixture.Spawn(sleep); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleep.Process.Kill(); _ = sleep.Wait() })
	pid := fmt.Sprint(sleep.Process.Pid)
	for range 100 { // until it has become sleep
		c := exec.Command("setpriv", append(nobody, binary, "dump", "-p", pid)...)
		c.Dir = "/"
		r := finish(t, c)
		if r.code == exitOK && regexp.MustCompile(`"sleep" native tid=`+pid+` .* sleeping in clock_nanosleep\n(.*\[kernel\]\n)*.*nanosleep`).MatchString(r.out) {
			return
		}
		if r.code != exitOK && r.code != exitPermission {
			t.Fatalf("exit code %d\n%s", r.code, r.err)
		}
	}
	t.Error("the user's own program is not shown")
}

// Only the user of a process may read the file that shows where its threads wait. The smallest set
// of capabilities with which candid records shows that nevertheless, and a message says what to do
// if one of them is missing.
func TestDumpOfOthers(t *testing.T) {
	able(t)
	root(t)
	sleep := exec.Command("setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", "sleep", "600")
	sleep.Dir = "/"
	if err := fixture.Spawn(sleep); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleep.Process.Kill(); _ = sleep.Wait() })
	pid := fmt.Sprint(sleep.Process.Pid)
	await(t, "sleep", func() bool {
		b, _ := os.ReadFile("/proc/" + pid + "/syscall")
		comm, _ := os.ReadFile("/proc/" + pid + "/comm")
		return string(comm) == "sleep\n" && bytes.HasPrefix(b, []byte(fmt.Sprint(unix.SYS_CLOCK_NANOSLEEP, " ")))
	})
	seen := regexp.MustCompile(`"sleep" native tid=` + pid + ` .* sleeping in clock_nanosleep\n(.*\[kernel\]\n)*.*nanosleep.*\[native\]\n(.*\[native\]\n)*.*__libc_start`)
	for _, c := range []struct {
		caps  string
		shown bool
	}{
		{"+perfmon,+bpf,+sys_ptrace", true},
		{"+sys_ptrace,+dac_read_search", true},
		{"+sys_ptrace", false},
	} {
		cmd := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,"+c.caps, "--ambient-caps=-all,"+c.caps, "--bounding-set=-all,"+c.caps,
			binary, "dump", "--repeat", "2", "--interval", "1ms", "-p", pid)
		cmd.Dir = "/"
		r := finish(t, cmd)
		want := 0
		if c.shown {
			want = 2
		}
		if got := len(seen.FindAllString(r.out, -1)); r.code != exitOK || got != want || c.shown == strings.Contains(r.out, "CAP_DAC_READ_SEARCH") {
			t.Errorf("%s: exit code %d, %d stacks\n%s%s", c.caps, r.code, got, r.err, r.out)
		}
	}
}

// The kinds of threads are in a recording, and select from it.
func TestThreadKinds(t *testing.T) {
	t.Parallel()
	launcher, classes := java(t)
	target := start(t, exec.Command(launcher, "-cp", classes, "Ticks"))
	target.wait(t, "tick")
	c := command(t)
	in := func(args ...string) result {
		r := command(t, args...)
		r.Dir = c.Dir
		return finish(t, r)
	}
	// The thread main hardly runs.
	mainSeen := regexp.MustCompile(`(?m)TID  KIND +THREAD$(.*\n)+.* java +main$`)
	var all result
	for _, long := range forLong {
		if r := in("record", "-q", "-F", "999", "-d", long, "-p", target.pid(), "--force", "-o", "k.pb.gz"); r.code != exitOK && sampled(r) {
			t.Fatal(r.err)
		}
		if all = in("report", "k.pb.gz", "--view", "threads"); mainSeen.MatchString(all.out) {
			break
		}
	}
	if !mainSeen.MatchString(all.out) {
		t.Errorf("%s", all.out)
	}
	if java := in("report", "k.pb.gz", "--thread-kind", "java", "--view", "threads"); !strings.Contains(java.out, "main") || strings.Contains(java.out, "VM Periodic") {
		t.Errorf("%s", java.out)
	}
	if gc := in("report", "k.pb.gz", "--thread-kind", "gc", "--view", "threads"); strings.Contains(gc.out, "main") {
		t.Errorf("%s", gc.out)
	}
	// Selecting while recording selects the same.
	var java result
	for _, long := range forLong {
		if r := in("record", "-q", "-F", "999", "-d", long, "-p", target.pid(), "--thread-kind", "java", "--force", "-o", "j.jfr"); r.code != exitOK && sampled(r) {
			t.Fatal(r.err)
		}
		if java = in("report", "j.jfr", "--view", "threads"); strings.Contains(java.out, "main") {
			break
		}
	}
	if !strings.Contains(java.out, "main") || regexp.MustCompile(`(?m) (compiler|gc|vm|native) +\S+$`).MatchString(java.out) {
		t.Errorf("%s", java.out)
	}
	in("record", "-p", target.pid(), "--thread-kind", "fast").refused(t, exitUsage, "fast", "compiler")
	in("report", "k.pb.gz", "--thread-kind", "fast").refused(t, exitUsage, "fast", "compiler")
}
