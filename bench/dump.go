package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/dump"
)

// dump measures how long a dump of a thousand threads takes, from the start of candid to its end,
// and how long the running ones are stopped for it.
func (b *bench) dump() {
	for _, major := range []string{"17", "25"} {
		all := row{Section: "dump", What: "candid dump of a JVM with 1,000 threads, all in, JDK " + major, Unit: "ms", Bar: "≤ 300 ms"}
		stood := row{Section: "dump", What: "… a running thread stands still, median, JDK " + major, Unit: "µs", Bar: "≤ 100 µs"}
		took, stops, err := b.looks(major, 21)
		if err != nil {
			all.Failed, stood.Failed = err.Error(), err.Error()
		} else {
			all.Value, all.Min, all.Max, all.Runs = took[len(took)/2], took[0], took[len(took)-1], len(took)
			stood.Value, stood.Min, stood.Max, stood.Runs = stops[len(stops)/2], stops[0], stops[len(stops)-1], len(stops)
		}
		b.add(all)
		b.add(stood)
	}
}

// looks returns how long each dump took, in ms, and each stop, in µs, both sorted.
func (b *bench) looks(major string, n int) (took, stops []float64, err error) {
	classes, err := b.compile(major, "Waiting.java")
	if err != nil {
		return nil, nil, err
	}
	p, err := start("ready", b.java(major), "-cp", classes, "Waiting", "1000")
	if err != nil {
		return nil, nil, err
	}
	defer p.stop()
	for range n {
		begin := time.Now()
		out, err := exec.Command(b.candid, "dump", "--json", "-p", fmt.Sprint(p.pid())).Output()
		if err != nil {
			return nil, nil, fmt.Errorf("candid dump: %w", err)
		}
		took = append(took, float64(time.Since(begin).Microseconds())/1000)
		var look dump.Dump
		if err := json.Unmarshal(out, &look); err != nil {
			return nil, nil, fmt.Errorf("candid's dump: %w", err)
		}
		seen := 0
		for _, t := range look.Processes[0].Threads {
			if t.Read != dump.ReadNot && len(t.Frames) > 0 && t.End == "" {
				seen++
			}
			if t.Read == dump.ReadStopped {
				stops = append(stops, t.StoppedUS)
			}
		}
		if seen < 1000 {
			return nil, nil, fmt.Errorf("only %d stacks are whole", seen)
		}
	}
	if len(stops) == 0 {
		return nil, nil, fmt.Errorf("no thread was met running")
	}
	slices.Sort(took)
	slices.Sort(stops)
	return took, stops, nil
}
