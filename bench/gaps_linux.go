package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// gaps measures how long a thread that only reads the clock is stopped at each of its samples: with
// candid, and with equally frequent events that record only the pc, in turn.
func (b *bench) gaps() {
	const hz, window = 5000, 500 * time.Millisecond
	names := []string{"mean", "median", "90th percentile"}
	bars := []string{"≤ 2 µs", "", "≤ 5 µs"}
	fail := func(err error) {
		b.add(row{Section: "gaps", What: "a thread's gaps at 5 kHz", Failed: err.Error()})
	}
	cp, err := b.compile("17", "Gaps.java")
	if err != nil {
		fail(err)
		return
	}
	p, err := start("", b.java("17"), "-cp", cp, "Gaps", fmt.Sprint(window.Milliseconds()), fmt.Sprint(int(hz*window.Seconds())))
	if err != nil {
		fail(err)
		return
	}
	defer p.stop()
	// measure returns the median of each figure over n windows, not counting the first, which began
	// earlier.
	measure := func(n int) (of [3]float64, err error) {
		var v [3][]float64
		for i := 0; i <= n; {
			if !p.out.Scan() {
				return of, fmt.Errorf("the program ended")
			}
			var got [3]float64
			if k, _ := fmt.Sscanf(p.out.Text(), "%g %g %g", &got[0], &got[1], &got[2]); k < 3 {
				continue
			}
			if i > 0 {
				for j := range got {
					v[j] = append(v[j], got[j])
				}
			}
			i++
		}
		for j := range v {
			of[j], _, _ = medianRange(v[j])
		}
		return of, nil
	}
	rounds, windows := 12, 6
	if b.quick {
		rounds = 3
	}
	var bare, more [3][]float64
	for range rounds {
		fds, end, err := bareEvents(time.Second / hz)
		if err != nil {
			end()
			fail(err)
			return
		}
		switchEvents(fds, unix.PERF_EVENT_IOC_ENABLE)
		without, err := measure(windows)
		end()
		if err != nil {
			fail(err)
			return
		}
		stop, err := run(exec.Command(b.candid, "record", "-q", "--force", "-p", fmt.Sprint(p.pid()), "-F", fmt.Sprint(hz), "-o", filepath.Join(b.work, "gaps.jfr")))
		if err != nil {
			fail(err)
			return
		}
		time.Sleep(2 * time.Second) // it attaches, and has then seen everything once
		_, err = measure(4)
		var with [3]float64
		if err == nil {
			with, err = measure(windows)
		}
		stop()
		if err != nil {
			fail(err)
			return
		}
		for j := range names {
			bare[j] = append(bare[j], without[j]/1e3)
			more[j] = append(more[j], (with[j]-without[j])/1e3)
		}
	}
	for j, name := range names {
		r := row{Section: "gaps", What: "a clock-reading thread's gaps at 5 kHz above those of the bare event: " + name, Unit: "µs", Bar: bars[j], Runs: len(more[j])}
		r.Value, r.Min, r.Max = medianRange(more[j])
		with, _, _ := medianRange(bare[j])
		r.Note = fmt.Sprintf("bare event: %.1f µs", with)
		b.add(r)
	}
}
