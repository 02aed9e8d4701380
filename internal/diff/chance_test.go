package diff

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// tails returns the two-sided probability in exact arithmetic: drawing k from n1+n2 samples, that
// k2 or fewer, or k2 or more, of them are from n2.
func tails(k1, n1, k2, n2 int64) float64 {
	var lower, upper big.Int
	for x := max(0, k1+k2-n1); x <= min(k1+k2, n2); x++ {
		var a, b big.Int
		a.Mul(a.Binomial(n2, x), b.Binomial(n1, k1+k2-x))
		if x <= k2 {
			lower.Add(&lower, &a)
		}
		if x >= k2 {
			upper.Add(&upper, &a)
		}
	}
	var all, least big.Float
	var of big.Int
	all.SetInt(of.Binomial(n1+n2, k1+k2))
	least.SetInt(&lower)
	if lower.Cmp(&upper) > 0 {
		least.SetInt(&upper)
	}
	p, _ := least.Quo(&least, &all).Float64()
	return min(1, 2*p)
}

func TestShares(t *testing.T) {
	for _, c := range [][4]int64{
		{0, 10, 5, 10}, {5, 10, 0, 10}, {0, 1000, 9, 1000}, {0, 1000, 10, 1000}, {1, 100, 1, 100}, {3, 50, 40, 60},
		{0, 100_000, 1, 1000}, {0, 100_000, 2, 1000}, {300, 1000, 380, 1000}, {997, 1000, 1000, 1000}, {12, 400, 30, 300}, {40, 1000, 90, 1500},
	} {
		want := tails(c[0], c[1], c[2], c[3])
		got := shares(float64(c[0]), float64(c[1]), float64(c[2]), float64(c[3]))
		// If the normal distribution is used, only the order of magnitude matters.
		exact := min(float64(c[1]), float64(c[3]))*float64(c[0]+c[2])/float64(c[1]+c[3]) <= 50
		if ratio := got / want; exact && math.Abs(ratio-1) > 1e-6 || ratio > 3 || ratio < 0.3 {
			t.Errorf("%v: %g, want %g", c, got, want)
		}
		if back := shares(float64(c[2]), float64(c[3]), float64(c[0]), float64(c[1])); math.Abs(back/got-1) > 1e-6 {
			t.Errorf("%v: %g, the other way round %g", c, got, back)
		}
	}
	for _, c := range [][4]float64{{0, 0, 0, 0}, {0, 10, 0, 10}, {10, 10, 10, 10}, {5, 0, 1, 2}, {100, 200, 100, 200}} {
		if p := shares(c[0], c[1], c[2], c[3]); p != 1 {
			t.Errorf("%v: %g, want 1", c, p)
		}
	}
}

func TestRates(t *testing.T) {
	// 0 and 9 in the same time are as likely as nine coins that fall the same way.
	if got, want := rates(0, 10, 9, 10), math.Pow(0.5, 8); math.Abs(got/want-1) > 1e-6 {
		t.Errorf("%g, want %g", got, want)
	}
	if p := rates(1000, 10, 2000, 20); p < 0.99 {
		t.Errorf("the same rate: %g", p)
	}
	if p := rates(1000, 10, 1000, 20); p > 1e-9 {
		t.Errorf("half the rate: %g", p)
	}
	for _, c := range [][4]float64{{0, 0, 0, 0}, {0, 1, 0, 1}, {1, 0, 1, 1}} {
		if p := rates(c[0], c[1], c[2], c[3]); p != 1 {
			t.Errorf("%v: %g", c, p)
		}
	}
}

// TestFalseAlarms draws two recordings of one program again and again: they are told apart as
// rarely as promised, and two of different programs nearly always. The draws are the same each
// time.
func TestFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	draw := func(n int, p float64) (k float64) {
		for range n {
			if r.Float64() < p {
				k++
			}
		}
		return k
	}
	const times, n1, n2 = 1500, 500, 2000
	for _, p := range []float64{0.002, 0.01, 0.1, 0.5, 0.97} {
		alarms, found := 0, 0
		for range times {
			k1, k2 := draw(n1, p), draw(n2, p)
			if shares(k1, n1, k2, n2) <= Unlikely {
				alarms++
			}
			if rates(k1, n1, k2, n2) <= Unlikely {
				alarms++ // it asks less of large shares, never more
			}
			if shares(k1, n1, draw(n2, min(p+0.15, 1)), n2) <= Unlikely {
				found++
			}
		}
		// For both together 8 are expected; an exact test has fewer if few are drawn.
		if alarms > 24 {
			t.Errorf("share %v: %d false alarms in %d", p, alarms, 2*times)
		}
		if p < 0.9 && found < times*95/100 {
			t.Errorf("share %v: %d of %d real differences found", p, found, times)
		}
		t.Logf("share %v: %d false alarms in %d, %d of %d real differences found", p, alarms, 2*times, found, times)
	}
}
