package diff

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/candid-profiler/candid/internal/format/collapsed"
	"github.com/candid-profiler/candid/internal/profile"
)

// Folded writes both in the format in which flamegraph.pl and inferno read a comparison: a line for
// each distinct stack, its frames outermost first, the value of base and the value of new. Base is
// scaled to new's total, or to new's time, unless Normalize is None.
func (c *Comparison) Folded(w io.Writer) error {
	names := make([]string, len(c.Funcs))
	for i := range names {
		names[i] = collapsed.Name(c.Funcs[i].Name)
	}
	// Samples that all weigh the same are counted, as in collapsed files.
	value := func(n profile.Count) float64 { return float64(n.Weight) }
	if c.even() {
		value = func(n profile.Count) float64 { return float64(n.Samples) }
	}
	scale := 1.0
	switch all := value(c.All[0]); {
	case c.Normalize == Time:
		scale = c.Sides[1].Span.Seconds() / c.Sides[0].Span.Seconds()
	case c.Normalize == Total && all > 0:
		scale = value(c.All[1]) / all
	}
	out := bufio.NewWriterSize(w, 64<<10)
	var path []uint32
	var buf []byte
	for i, n := range c.leaves {
		if n[0].Samples+n[1].Samples == 0 {
			continue
		}
		path = path[:0]
		for at := uint32(i); at != profile.RootNode; at = c.trie.At(at).Parent {
			path = append(path, c.trie.At(at).Frame)
		}
		buf = buf[:0]
		for _, fn := range slices.Backward(path) {
			buf = append(append(buf, names[fn]...), ';')
		}
		if len(buf) == 0 {
			buf = append(buf, "[no stack];"...)
		}
		buf[len(buf)-1] = ' '
		buf = appendNumber(buf, scale*value(n[0]))
		buf = append(buf, ' ')
		buf = append(appendNumber(buf, value(n[1])), '\n')
		if _, err := out.Write(buf); err != nil {
			return fmt.Errorf("write folded stacks: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write folded stacks: %w", err)
	}
	return nil
}

// even reports whether all samples of both weigh the same.
func (c *Comparison) even() bool {
	var first uint64
	any, even := false, true
	c.Pair.Each(func(s *profile.Sample, n uint64) {
		if !any {
			any, first = true, s.Weight/n
		}
		even = even && s.Weight == first*n
	})
	return even
}

// appendNumber writes whole numbers without a fraction, and also numbers so large that the fraction
// does not matter; others have three decimals.
func appendNumber(b []byte, v float64) []byte {
	if whole := uint64(v + 0.5); v == float64(whole) || v >= 1e6 {
		return strconv.AppendUint(b, whole, 10)
	}
	return strconv.AppendFloat(b, v, 'f', 3, 64)
}
