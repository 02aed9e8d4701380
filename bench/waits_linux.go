package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
)

// waits compares wall and off-CPU time of Java threads that wait in known ways with what each
// measured by its own clocks.
func (b *bench) waits() {
	for _, major := range []string{"8", "17", "25"} {
		for _, by := range []struct {
			what   string
			flags  []string
			events []string
		}{
			{"-e wall,off-cpu", []string{"-e", "wall,off-cpu"}, []string{"wall", "off-cpu"}},
			{"-e wall --engine suspend", []string{"-e", "wall", "--engine", "suspend"}, []string{"wall"}},
		} {
			b.add(b.sharesOf(major, by.what, by.flags, by.events))
		}
	}
}

// account is what a thread of Shares reports about itself, in ns; begin and end by CLOCK_MONOTONIC.
type account struct {
	name, method                       string
	tid                                int
	asleep, ran, begin, end, run, wait float64
}

func (b *bench) sharesOf(major, what string, flags, events []string) row {
	secs := b.seconds(10)
	r := row{Section: "waits", Unit: "% of the thread's time", Bar: "≤ 2 %",
		What: fmt.Sprintf("%s: the furthest off that a thread's time asleep, running or waiting for a CPU is, all of it and in its method, JDK %s, %d s", what, major, secs)}
	p, list, zero, err := b.recordShares(major, secs, flags)
	if err != nil {
		r.Failed = err.Error()
		return r
	}
	var notes []string
	for _, a := range list {
		life, worst, note := a.end-a.begin, -1.0, ""
		for event, name := range events {
			for _, c := range a.compare(p, event, zero) {
				if off := 100 * math.Abs(c.got-c.want) / life; off > worst {
					worst, note = off, fmt.Sprintf("%s %.2f %% (%s, by %s: %.1f of %.1f ms)", a.name, off, c.what, name, c.got/1e6, c.want/1e6)
				}
			}
		}
		r.Value = max(r.Value, worst)
		notes = append(notes, note)
	}
	r.Note = strings.Join(notes, "; ")
	return r
}

// recordShares records Shares until it ends. zero is when the profile's time begins, by
// CLOCK_MONOTONIC.
func (b *bench) recordShares(major string, secs int, flags []string) (p *profile.Profile, list []account, zero float64, err error) {
	cp, err := b.compile(major, "Shares.java")
	if err != nil {
		return nil, nil, 0, err
	}
	prog, err := start("", b.java(major), "-Xmx64m", "-cp", cp, "Shares", fmt.Sprint(secs))
	if err != nil {
		return nil, nil, 0, err
	}
	defer prog.stop()
	file := filepath.Join(b.work, fmt.Sprintf("r%d.jfr", time.Now().UnixNano()))
	defer os.Remove(file)
	args := append([]string{"record", "-q", "-F", "499", "-o", file, "-p", fmt.Sprint(prog.pid())}, flags...)
	cmd := exec.Command(b.candid, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, nil, 0, err
	}
	// The file grows with the first samples: then the threads may begin.
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if st, err := os.Stat(file); err == nil && st.Size() > 4096 {
			break
		}
	}
	if _, err := io.WriteString(prog.in, "\n"); err != nil {
		return nil, nil, 0, err
	}
	for prog.out.Scan() {
		var a account
		if _, err := fmt.Sscan(prog.out.Text(), &a.name, &a.tid, &a.method, &a.asleep, &a.ran, &a.begin, &a.end, &a.run, &a.wait); err != nil {
			return nil, nil, 0, fmt.Errorf("%q: %w", prog.out.Text(), err)
		}
		list = append(list, a)
	}
	if err := cmd.Wait(); err != nil { // it ends with the program
		return nil, nil, 0, fmt.Errorf("candid record: %w: %s", err, firstLine([]byte(stderr.String())))
	}
	if len(list) != 6 {
		return nil, nil, 0, fmt.Errorf("%d threads give account, not 6", len(list))
	}
	if p, err = format.Read(file); err != nil {
		return nil, nil, 0, err
	}
	var mono unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono); err != nil {
		return nil, nil, 0, err
	}
	return p, list, float64(mono.Nano()) - float64(time.Since(p.Meta.Start.Round(0))), nil
}

// compared is something that a thread did, in ns by candid's account and by its own.
type compared struct {
	what      string
	got, want float64
}

// compare adds up the weights of an event in the time that the thread's account covers.
func (a account) compare(p *profile.Profile, event int, zero float64) []compared {
	var ran, ready, slept, busy, asleep float64
	for i := range p.Samples {
		s := &p.Samples[i]
		at := zero + float64(s.Time)
		if int(s.Event) != event || p.Threads[s.Thread].TID != a.tid || at < a.begin || at > a.end {
			continue
		}
		all, in := &slept, &asleep
		switch s.State {
		case profile.StateRunning:
			all, in = &ran, &busy
		case profile.StateRunnable:
			all, in = &ready, nil
		}
		*all += float64(s.Weight)
		if in != nil && under(p, s.Node, a.method) {
			*in += float64(s.Weight)
		}
	}
	sleep := a.end - a.begin - a.run - a.wait
	out := []compared{{"asleep", slept, sleep}, {"asleep in " + a.method, asleep, a.asleep}}
	if p.Events[event].Name == "wall" {
		out = append(out, compared{"running", ran, a.run}, compared{"waiting for a CPU", ready, a.wait})
		if a.ran > a.run/2 {
			// For a method that only waits, the time that it ran is mostly the cost of taking the
			// account.
			out = append(out, compared{"running in " + a.method, busy, a.ran})
		}
	}
	return out
}
