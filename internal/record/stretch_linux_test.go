package record

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// Two threads are asleep all the time, one of them in naps of 1.3 s. In any stretch of a recording
// they slept all of the time, the stretches add up to the whole, and a sleep is one sample, however
// often it was reported.
func TestSleepsInStretches(t *testing.T) {
	program := compile(t, "naps")
	for _, how := range [][2]string{{"auto", "wall"}, {"auto", "off-cpu"}, {"suspend", "wall"}} {
		t.Run(strings.Join(how[:], " "), func(t *testing.T) {
			t.Parallel() // it sleeps, and so does candid
			sleepsInStretches(t, program, how)
		})
	}
}

func sleepsInStretches(t *testing.T, program string, how [2]string) {
	c := exec.Command(program)
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	fixture.Attempts(t, 6, func() (wrong string) {
		p := run(t, Options{PIDs: []int{c.Process.Pid}, Engine: how[0], Events: []string{how[1]}, Hz: 20, Duration: 5 * time.Second}).Profile
		end := filter.Length(p)
		cuts := []time.Duration{0, end / 3, end / 3 * 2, 0}
		whole, sums := p.Select(profile.Filter{}), make([]uint64, len(p.Threads))
		for i, from := range cuts[:3] {
			to := cuts[i+1]
			s := p.Select(profile.Filter{From: from, To: to})
			for k, n := range s.Threads {
				sums[k] += n.Weight
				// Attaching is in the first stretch, and what comes after the last look in the
				// last. The thread that naps waits for a CPU between its naps, which is not sleep.
				share, less, more := float64(n.Weight)/float64(to-from), apart, apart
				if p.Threads[k].Name == "napper" {
					if less, more = 0.1, 0.1; how[1] == "off-cpu" {
						less, more = 1, apart
					}
				}
				if i == 1 && (share < 1-less || share > 1+more) {
					wrong += fmt.Sprintf("%v: %s has %.3f of the time from %v to %v; ", how, p.Threads[k].Name, share, from, to)
				}
			}
		}
		for k, n := range whole.Threads {
			if sums[k] != n.Weight {
				t.Errorf("%v: %s has %d ns in all stretches together, %d in the whole", how, p.Threads[k].Name, sums[k], n.Weight)
			}
		}
		if len(p.Threads) != 2 {
			t.Fatalf("%v: %d threads", how, len(p.Threads))
		}
		if how[0] != "auto" {
			return wrong // there it is not always known which of the pieces belong to one sleep
		}
		at := map[uint32]int{}
		for _, s := range p.Samples {
			if s.State == profile.StateSleeping {
				at[s.Thread]++
			}
		}
		for k, n := range at {
			// No nap is shorter than 1.3 s, and the first and the last are cut.
			if most := int(end/(1300*time.Millisecond)) + 2; p.Threads[k].Name == "sleeper" && n != 1 || n > most {
				t.Errorf("%v: %s slept %d times in %v", how, p.Threads[k].Name, n, end)
			}
		}
		return wrong
	})
}
