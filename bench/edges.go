package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// edges records extreme cases: thousands of threads, stacks of 10,000 frames, a thousand threads
// born each second.
func (b *bench) edges() {
	d := time.Duration(max(b.seconds(30), 10)) * time.Second
	for _, e := range []struct {
		what string
		run  func(*row) (*recording, error)
	}{
		{"5,000 threads with short bursts, 1 kHz: the recording's CPU beside the kernel's account", func(r *row) (*recording, error) {
			r.Unit = "% off"
			return b.crowd(r, d)
		}},
		{"recursion of 10,000 frames, 1 kHz: complete stacks", func(r *row) (*recording, error) {
			r.Unit, r.Bar = "%", "≥ 99.9 %"
			return b.deep(r, d)
		}},
		{"1,000 threads born a second, 200 µs each, 1 kHz: their CPU beside their own account", func(r *row) (*recording, error) {
			r.Unit = "% off"
			return b.births(r, d)
		}},
	} {
		r := row{Section: "edges", What: fmt.Sprintf("%s, %v", e.what, d)}
		rec, err := e.run(&r)
		if err != nil {
			r.Failed = err.Error()
		} else {
			q := rec.profile.Quality()
			r.Note += fmt.Sprintf("; %d samples, %d lost, %.2f %% complete; %.1f µs own CPU a sample, %.0f MB", q.Samples, rec.profile.Losses.Lost,
				100*float64(q.Complete+q.Stitched)/float64(max(q.Samples, 1)), rec.summary.OwnCPU/float64(max(q.Samples, 1))/1e3, rec.summary.MaxRSS/1e6)
		}
		b.add(r)
	}
}

// crowd compares the samples with the kernel's account of the whole process.
func (b *bench) crowd(r *row, d time.Duration) (*recording, error) {
	cp, err := b.compile("17", "Crowd.java")
	if err != nil {
		return nil, err
	}
	p, err := start("ready", b.java("17"), "-cp", cp, "Crowd", "5000", "600")
	if err != nil {
		return nil, err
	}
	defer p.stop()
	time.Sleep(3 * time.Second)
	// The recording lasts for d; the CPU rate around it is the steady program's.
	rate := func() (float64, error) {
		c0, err := processCPU(p.pid())
		t0 := time.Now()
		time.Sleep(3 * time.Second)
		c1, err1 := processCPU(p.pid())
		if err == nil {
			err = err1
		}
		return (c1 - c0) / float64(time.Since(t0)), err
	}
	c0, err := processCPU(p.pid())
	if err != nil {
		return nil, err
	}
	t0 := time.Now()
	rec, err := b.attachTo(p.pid(), d, "-F", "1000")
	if err != nil {
		return nil, err
	}
	c1, err := processCPU(p.pid())
	during := (c1 - c0) / float64(time.Since(t0))
	if err != nil {
		return nil, err
	}
	after, err := rate()
	if err != nil {
		return nil, err
	}
	weight := 0.0
	threads := map[uint32]bool{}
	for _, s := range rec.profile.Samples {
		weight += float64(s.Weight)
		threads[s.Thread] = true
	}
	seen := weight / float64(rec.profile.Meta.Duration)
	r.Value = 100 * (seen/during - 1)
	r.Note = fmt.Sprintf("%.3f CPUs seen, %.3f by the kernel (%.3f without candid); %d threads were sampled; first sample after %.0f ms", seen, during, after, len(threads), rec.summary.FirstWalked/1e6)
	return rec, nil
}

// processCPU returns the CPU time of a process in ns, by the kernel's ticks.
func processCPU(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(f) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is %q", pid, text)
	}
	user, err1 := strconv.ParseFloat(f[11], 64)
	system, err2 := strconv.ParseFloat(f[12], 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("/proc/%d/stat is %q", pid, text)
	}
	return (user + system) * 1e7, nil
}

func (b *bench) deep(r *row, d time.Duration) (*recording, error) {
	cp, err := b.compile("17", "Deep.java")
	if err != nil {
		return nil, err
	}
	p, err := start("", b.java("17"), "-Xss64m", "-cp", cp, "Deep", "600", "10000")
	if err != nil {
		return nil, err
	}
	defer p.stop()
	time.Sleep(2 * time.Second)
	rec, err := b.attachTo(p.pid(), d, "-F", "1000")
	if err != nil {
		return nil, err
	}
	q := rec.profile.Quality()
	r.Value = 100 * float64(q.Complete+q.Stitched) / float64(max(q.Samples, 1))
	deepest, whole := 0, 0
	for _, s := range rec.profile.Samples {
		n := 0
		for at := s.Node; at != profile.RootNode; at = rec.profile.Nodes[at].Parent {
			n++
		}
		deepest = max(deepest, n)
		if n > 10000 {
			whole++
		}
	}
	r.Note = fmt.Sprintf("the deepest has %d frames, %d samples have more than 10,000", deepest, whole)
	return rec, nil
}

func (b *bench) births(r *row, d time.Duration) (*recording, error) {
	cp, err := b.compile("17", "Births.java")
	if err != nil {
		return nil, err
	}
	rec, err := b.launch([]string{"-F", "1000"}, b.java("17"), "-cp", cp, "Births", fmt.Sprint(d.Seconds()))
	if err != nil {
		return nil, err
	}
	var truth struct{ Born, Threads float64 }
	if err := json.Unmarshal([]byte(lastLine(rec.stdout)), &truth); err != nil {
		return nil, err
	}
	seen := weightUnder(rec.profile, "Births.life")
	r.Value = 100 * (seen/truth.Born - 1)
	r.Note = fmt.Sprintf("%.0f threads, %.0f ms of CPU by their own account, %.0f ms seen", truth.Threads, truth.Born/1e6, seen/1e6)
	return rec, nil
}
