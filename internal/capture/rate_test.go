package capture

import (
	"math"
	"testing"
	"time"
)

// share returns the measured share of a task that runs for busy of every task ns, from phase on, if
// it is sampled at the periods that next returns.
func share(total, task, busy, phase float64, next func(t float64) float64) float64 {
	hit, all := 0.0, 0.0
	for t := next(0); t < total; {
		p := next(t)
		if math.Mod(t+task-phase, task) < busy {
			hit += p
		}
		all += p
		t += p
	}
	return hit / all
}

// TestChooseRateKeepsOffRoundTimers draws periods at random, so it allows for chance: of
// independent samples 0.3 % of the shares lie beyond three standard deviations. A rate in lockstep
// with a task is wrong by ten and more.
func TestChooseRateKeepsOffRoundTimers(t *testing.T) {
	beyond, all := 0, 0
	for _, hz := range []float64{19, 49, 50, 97, 99, 100, 101, 125, 199, 200, 249, 250, 300, 333, 500, 997, 999, 1000, 2000, 4999, 5000, 10000} {
		period, moved, why := ChooseRate(hz)
		if off := math.Abs(float64(period)*hz/1e9 - 1); off > 0.041 {
			t.Errorf("%g Hz became %v, %.1f %% away", hz, period, off*100)
		}
		if moved != (why != "") {
			t.Errorf("%g Hz: moved %v, why %q", hz, moved, why)
		}
		for _, task := range []float64{4e6, 5e6, 10e6, 20e6} {
			for phase := 0.0; phase < 1; phase += 0.11 {
				// The period is redrawn every second, as in the engines.
				current, until := float64(period), 1e9
				got := share(20e9, task, task/5, phase*task, func(now float64) float64 {
					if now > until {
						current, until = float64(Jitter(period)), until+1e9
					}
					return current
				})
				sigma := math.Sqrt(0.2 * 0.8 / (20 * hz))
				off := math.Abs(got - 0.2)
				if all++; off > 3*sigma+0.002 {
					beyond++
				}
				if limit := 8*sigma + 0.002; off > limit {
					t.Errorf("%g Hz (%v): a task of %.0f ms at phase %.2f has %.2f %% of 20, limit ±%.2f", hz, period, task/1e6, phase, got*100, limit*100)
				}
			}
		}
	}
	if beyond*100 > all {
		t.Errorf("%d of %d shares are beyond three deviations, more than 1 %%", beyond, all)
	}
	t.Logf("%d of %d shares beyond three deviations", beyond, all)
}

func TestChooseRateMovesTheRoundOnes(t *testing.T) {
	for _, hz := range []float64{50, 100, 200, 250, 500, 1000} {
		if _, moved, _ := ChooseRate(hz); !moved {
			t.Errorf("%g Hz stays, in step with every timer of round milliseconds", hz)
		}
	}
	if p, moved, why := ChooseRate(99); moved {
		t.Errorf("99 Hz, the default, became %v: %s", p, why)
	}
}

func TestChooseRateLimits(t *testing.T) {
	for _, hz := range []float64{0, -1, math.NaN(), math.Inf(1), 1e12} {
		if p, _, _ := ChooseRate(hz); p < time.Second/MaxHz*9/10 || p > time.Duration(1.1e9/MinHz) {
			t.Errorf("ChooseRate(%g) = %v", hz, p)
		}
	}
}

func TestJitterStaysNear(t *testing.T) {
	period, _, _ := ChooseRate(1000)
	seen := map[time.Duration]bool{}
	for range 100 {
		j := Jitter(period)
		seen[j] = true
		if math.Abs(float64(j)/float64(period)-1) > 0.031 {
			t.Errorf("Jitter(%v) = %v", period, j)
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d different periods of 100", len(seen))
	}
}
