package diff

import (
	"math"
	"math/bits"
)

// Unlikely is the probability, for two recordings of one program, below which a difference is taken
// for more than chance: three standard deviations.
const Unlikely = 0.0027

// tally is how many samples a side has, their weight, and the sum of the weights' squares. Samples
// of different weight carry less information than as many of equal weight.
type tally struct {
	samples uint64
	weight  uint64
	squares squares
}

// squares sums squares exactly, so that the result does not depend on their order.
type squares struct{ hi, lo uint64 }

// add adds the squares of equal numbers: one is each number, all is their sum.
func (q *squares) add(one, all uint64) {
	hi, lo := bits.Mul64(one, all)
	var carry uint64
	q.lo, carry = bits.Add64(q.lo, lo, 0)
	q.hi += hi + carry
}

func (q squares) float() float64 { return math.Ldexp(float64(q.hi), 64) + float64(q.lo) }

// effective returns how many samples of equal weight would carry as much information (Kish): the
// square of the sum over the sum of the squares.
func (t tally) effective() float64 {
	all := t.squares.float()
	if all <= 0 {
		return float64(t.samples)
	}
	return float64(t.weight) * float64(t.weight) / all
}

// shares returns the probability that two recordings of one program differ at least as much as k1
// of n1 samples do from k2 of n2: Fisher's exact test, two-sided, approximated by the normal
// distribution where that is close to it.
func shares(k1, n1, k2, n2 float64) float64 {
	if n1 <= 0 || n2 <= 0 || k1+k2 <= 0 || k1+k2 >= n1+n2 {
		return 1
	}
	// The rarer of the two outcomes gives the same result with fewer terms.
	if k1+k2 > (n1+n2)/2 {
		k1, k2 = n1-k1, n2-k2
	}
	k, n := k1+k2, n1+n2
	if least := min(n1, n2) * k / n; least > 50 {
		p := k / n
		z := math.Abs(k1/n1-k2/n2) / math.Sqrt(p*(1-p)*(1/n1+1/n2))
		return math.Erfc(z / math.Sqrt2)
	}
	// The side with less than expected is summed up to the number it has.
	if k1/n1 < k2/n2 {
		n1, k2, n2 = n2, k1, n1
	}
	k, n1, n2 = math.Round(k), math.Round(n1), math.Round(n2)
	n = n1 + n2
	return min(1, 2*lowerTail(math.Round(k2), k, func(x float64) float64 {
		return choose(n2, x) + choose(n1, k-x) - choose(n, k)
	}))
}

// rates is the same for k1 samples in t1 and k2 in t2: for rates by time, t is how many samples the
// same time would give.
func rates(k1, t1, k2, t2 float64) float64 {
	if t1 <= 0 || t2 <= 0 || k1+k2 <= 0 {
		return 1
	}
	k, part := k1+k2, t2/(t1+t2)
	if least := k * min(part, 1-part); least > 50 {
		return math.Erfc(math.Abs(k2-k*part) / math.Sqrt(2*k*part*(1-part)))
	}
	if k2 > k*part {
		k2, part = k1, 1-part
	}
	k = math.Round(k)
	return min(1, 2*lowerTail(math.Round(k2), k, func(x float64) float64 {
		return choose(k, x) + x*math.Log(part) + (k-x)*math.Log1p(-part)
	}))
}

// lowerTail adds up probabilities, whose logarithm at returns, from x down to 0, or until the rest
// does not matter.
func lowerTail(x, most float64, at func(float64) float64) float64 {
	sum := 0.0
	for x = min(x, most); x >= 0; x-- {
		p := math.Exp(at(x))
		if math.IsNaN(p) {
			p = 0 // there are not so many
		}
		sum += p
		if p < sum*1e-9 {
			break
		}
	}
	return sum
}

// choose returns the logarithm of the binomial coefficient.
func choose(n, k float64) float64 {
	if k < 0 || k > n {
		return math.Inf(-1)
	}
	a, _ := math.Lgamma(n + 1)
	b, _ := math.Lgamma(k + 1)
	c, _ := math.Lgamma(n - k + 1)
	return a - b - c
}
