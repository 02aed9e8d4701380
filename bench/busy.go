package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// short measures the cost of a recording in which hardly anything happens: the CPU time of candid
// and of the processes that it starts.
func (b *bench) short() {
	r := row{Section: "short", What: "CPU of candid and its children, recording sleep 0.2", Unit: "ms", Bar: "≤ 40 ms"}
	var all []float64
	for range b.seconds(20) {
		cmd := exec.Command(b.candid, "record", "-q", "--force", "-o", filepath.Join(b.work, "short.jfr"), "--", "sleep", "0.2")
		if out, err := cmd.CombinedOutput(); err != nil {
			r.Failed = fmt.Sprintf("%v: %s", err, firstLine(out))
			b.add(r)
			return
		}
		all = append(all, float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())/1e6)
	}
	r.Value, r.Min, r.Max = spread(all)
	r.Runs = len(all)
	b.add(r)
}

// busy records the whole machine while it compiles C files and runs a Java program: thousands of
// short-lived processes beside one that generates code.
func (b *bench) busy() {
	const section = "busy"
	stop, err := b.busyMachine()
	if err != nil {
		b.add(row{Section: section, What: "the whole machine beside a build", Failed: err.Error()})
		return
	}
	defer stop()
	time.Sleep(3 * time.Second)
	for _, hz := range []string{"99", "999", "9999"} {
		secs := b.seconds(60)
		rec, err := b.wholeMachine(hz, time.Duration(secs)*time.Second)
		what := hz + " Hz, whole machine beside four compilers and a Java program: "
		if err != nil {
			b.add(row{Section: section, What: what, Failed: err.Error()})
			continue
		}
		samples, lost := rec.summary.All.Samples, float64(rec.profile.Losses.Lost)
		complete := 0
		for i := range rec.profile.Samples {
			s := &rec.profile.Samples[i]
			if c := profile.CertaintyOf(s.End, s.Flags); c == profile.CertaintyComplete || c == profile.CertaintyStitched {
				complete++
			}
		}
		machine := float64(secs) * 1e9 * float64(runtime.NumCPU())
		barCPU, barLost := "", "≤ 0.1 %"
		if hz == "99" {
			barCPU, barLost = "≤ 2 %", "0"
		}
		note := fmt.Sprintf("%.0f samples", samples)
		b.add(row{Section: section, What: what + "candid's CPU", Value: 100 * rec.summary.OwnCPU / machine, Unit: "% of the machine", Bar: barCPU, Runs: 1, Note: note})
		b.add(row{Section: section, What: what + "samples lost", Value: 100 * lost / max(samples+lost, 1), Unit: "%", Bar: barLost, Runs: 1, Note: note})
		b.add(row{Section: section, What: what + "complete stacks", Value: 100 * float64(complete) / max(float64(len(rec.profile.Samples)), 1), Unit: "%", Bar: "≥ 99.9 %", Runs: 1})
		b.add(row{Section: section, What: what + "memory at most", Value: rec.summary.MaxRSS / (1 << 20), Unit: "MiB", Bar: "≤ 200 MiB", Runs: 1})
	}
}

// wholeMachine records everything for some time.
func (b *bench) wholeMachine(hz string, d time.Duration) (*recording, error) {
	file := filepath.Join(b.work, "whole.jfr")
	defer os.Remove(file)
	var stdout, stderr strings.Builder
	cmd := exec.Command(b.candid, "record", "-a", "-q", "--json", "-F", hz, "-d", d.String(), "-o", file)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("candid record: %w: %s", err, firstLine([]byte(stderr.String())))
	}
	return readRecording(file, []byte(stdout.String()), "")
}

// busyMachine builds a C project repeatedly beside a Java program, until it is stopped.
func (b *bench) busyMachine() (stop func(), err error) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.work, "project")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	const files, functions = 120, 60
	for i := range files {
		var s strings.Builder
		s.WriteString("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n")
		for f := range functions {
			fmt.Fprintf(&s, "int f%d_%d(int a, char *b) { int i, s = %d; for (i = 0; i < a; i++) { s += b[i & 7] * i; if (s %% 7 == %d) s ^= a; } return s + (int)strlen(b); }\n", i, f, f, f%7)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.c", i)), []byte(s.String()), 0o644); err != nil {
			return nil, err
		}
	}
	cp, err := b.compile("17", "Steady.java")
	if err != nil {
		return nil, err
	}
	p, err := start("", b.java("17"), "-cp", cp, "Steady", "3600", "200")
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	var jobs sync.WaitGroup
	for job := range 4 {
		jobs.Go(func() {
			for i := job; ; i = (i + 4) % files {
				select {
				case <-ended:
					return
				default:
				}
				name := filepath.Join(dir, fmt.Sprintf("f%d", i))
				// The compiler is run by a shell, as in make.
				_ = exec.Command("sh", "-c", `"$0" -O2 -c "$1.c" -o "$1.o"`, cc, name).Run()
			}
		})
	}
	return func() { close(ended); jobs.Wait(); p.stop() }, nil
}
