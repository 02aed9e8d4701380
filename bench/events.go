package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// events measures the cost of watching threads that do not run.
func (b *bench) events() {
	b.idle()
	b.switches()
}

// compileC builds a C program in workloads.
func (b *bench) compileC(name string) (string, error) {
	exe := filepath.Join(b.work, name)
	if out, err := exec.Command("cc", "-O1", "-g", "-o", exe, filepath.Join("workloads", name+".c"), "-lpthread").CombinedOutput(); err != nil {
		return "", fmt.Errorf("cc %s.c: %w: %s", name, err, firstLine(out))
	}
	return exe, nil
}

func (b *bench) idle() {
	const threads = 5000
	d := time.Duration(max(b.seconds(30), 10)) * time.Second
	r := row{Section: "events", What: fmt.Sprintf("candid's CPU for %d sleeping threads, -e wall -F 20, %v", threads, d), Unit: "% of a core", Bar: "< 5 %"}
	err := func() error {
		exe, err := b.compileC("idle")
		if err != nil {
			return err
		}
		p, err := start("ready", exe, strconv.Itoa(threads))
		if err != nil {
			return err
		}
		defer p.stop()
		rec, err := b.attachTo(p.pid(), d, "-e", "wall", "-F", "20")
		if err != nil {
			return err
		}
		r.Value = 100 * rec.summary.OwnCPU / float64(d)
		weight := 0.0
		for _, s := range rec.profile.Samples {
			weight += float64(s.Weight)
		}
		r.Note = fmt.Sprintf("attaching and writing included; %.0f threads were seen for %.2f s each", rec.summary.All.Samples, weight/1e9/(threads+1))
		return nil
	}()
	if err != nil {
		r.Failed = err.Error()
	}
	b.add(r)
}

// switches measures by how much a context switch of the target takes longer while it is watched.
func (b *bench) switches() {
	r := row{Section: "events", What: "what a switch of the target takes longer with -e off-cpu", Unit: "ns"}
	err := func() error {
		exe, err := b.compileC("pingpong")
		if err != nil {
			return err
		}
		p, err := start("ready", exe)
		if err != nil {
			return err
		}
		defer p.stop()
		// until returns the durations of context switches that end in an interval.
		until := func(from, to time.Time) (ns []float64) {
			for time.Now().Before(to) && p.out.Scan() {
				if v, err := strconv.ParseFloat(p.out.Text(), 64); err == nil && time.Now().After(from) {
					ns = append(ns, v)
				}
			}
			return ns
		}
		var more, alone []float64
		for range b.seconds(30) / 3 {
			begin := time.Now()
			base, _, _ := spread(until(begin.Add(200*time.Millisecond), begin.Add(1200*time.Millisecond)))
			done := make(chan error, 1)
			begin = time.Now()
			go func() {
				_, err := b.attachTo(p.pid(), 3*time.Second, "-e", "off-cpu")
				done <- err
			}()
			with, _, _ := spread(until(begin.Add(1500*time.Millisecond), begin.Add(2800*time.Millisecond)))
			for len(done) == 0 {
				p.out.Scan()
			}
			if err := <-done; err != nil {
				return err
			}
			more, alone = append(more, with-base), append(alone, base)
		}
		r.Value, r.Min, r.Max = spread(more)
		r.Runs = len(more)
		base, _, _ := spread(alone)
		r.Note = fmt.Sprintf("beside %.0f ns without", base)
		return nil
	}()
	if err != nil {
		r.Failed = err.Error()
	}
	b.add(r)
}
