package capture

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Limits of the rate, in samples per second of CPU time.
const (
	MinHz = 0.1
	MaxHz = 20000
)

// roundPeriods are the periods, in ns, that programs often use for their timers and kernels for
// their ticks (100, 250, 300 and 1000 Hz).
var roundPeriods = [...]float64{1e6, 2e6, 1e9 / 300, 4e6, 5e6, 10e6, 20e6, 25e6, 50e6, 100e6}

// orders is the largest number in ratios for which lockstep matters: sampling that meets a task's
// period only at n points measures its share to within 1/n.
const orders = 16

// The phases must have spread after settleSamples samples or settleTime ns, whichever is later.
const (
	settleSamples = 100
	settleTime    = 0.5e9
)

// lockStep returns how far a sampling period in ns is in lockstep with round periods: the largest
// error that a task's share of time can have once the phases have had time to spread, as a fraction
// of that task's period. 0 is none, 1 is full lockstep.
func lockStep(period float64) float64 {
	worst, settle := 0.0, math.Max(settleSamples, settleTime/period)
	for _, t := range roundPeriods {
		alpha := period / t
		alpha -= math.Floor(alpha)
		for n := 1.0; n <= orders; n++ {
			off := math.Abs(n*alpha - math.Round(n*alpha))
			// With a step of off from one round to the next, the n points spread over settle/n
			// rounds.
			spread := off * settle
			if e := (1 - math.Min(1, spread)) / n; e > worst {
				worst = e
			}
		}
	}
	return worst
}

// tolerable is how much lockstep a period may have.
const tolerable = 0.13

// ChooseRate converts a rate in samples per second of CPU time to a period that is not in lockstep
// with the kernel's tick or with round milliseconds. If that changes the rate by more than
// rounding, moved is true and why says so for the user. Rates outside [MinHz, MaxHz] are set to the
// limit.
func ChooseRate(hz float64) (period time.Duration, moved bool, why string) {
	if !(hz >= MinHz) {
		hz = MinHz
	}
	if hz > MaxHz {
		hz = MaxHz
	}
	want := 1e9 / hz
	if lockStep(want) <= tolerable {
		return time.Duration(want), false, ""
	}
	// The nearest neighbour that is tolerable is chosen, a shorter period first; if there is none
	// within a few percent, the best.
	best, bestStep := want, math.Inf(1)
	const grain = 0.0005
	for i := 1.0; i*grain <= 0.04; i++ {
		for _, side := range [2]float64{1 + i*grain, 1 - i*grain} {
			p := want * side
			step := lockStep(p)
			if step < bestStep {
				best, bestStep = p, step
			}
		}
		if bestStep <= tolerable {
			break
		}
	}
	period = time.Duration(best)
	return period, true, fmt.Sprintf("%g Hz would keep step with timers of round milliseconds; sampling at %.4g Hz instead",
		hz, 1e9/float64(period))
}

// Jitter draws a random period within three percent of the given one that is no more in lockstep
// with round periods than ChooseRate would allow. It may be called from any goroutine.
func Jitter(period time.Duration) time.Duration {
	p := float64(period)
	best, bestStep := p, math.Inf(1)
	for range 48 {
		c := p * (1 + 0.06*(rand.Float64()-0.5))
		step := lockStep(c)
		if step <= tolerable {
			return time.Duration(c)
		}
		if step < bestStep {
			best, bestStep = c, step
		}
	}
	return time.Duration(best)
}
