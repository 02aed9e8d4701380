package report

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// percent formats a share in five columns: "12.3%", " 0.1%"; "100.0%" takes six.
func percent(share float64) string { return fmt.Sprintf("%.1f%%", share*100) }

// finePercent formats a share with more digits if it is close to nothing or to all, so that 99.96%
// is not shown as all. Something is never shown as nothing, nor less than all as all, however close
// it is.
func finePercent(share float64) string {
	if share > 0 && share < 0.001 || share > 0.999 && share < 1 {
		const least = 0.00001
		return fmt.Sprintf("%.3f%%", 100*min(max(share, least), 1-least))
	}
	return percent(share)
}

// Percent formats a share, 0 to 1, for people, with more digits if it is close to nothing or to
// all.
func Percent(share float64) string { return finePercent(share) }

// Amount formats a weight in its unit ("nanoseconds", "bytes", "count") with three digits.
func Amount(weight uint64, unit string) string { return amount(weight, unit) }

// grouped formats a number with its thousands apart: 1,234,567.
func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// amount formats a weight in its unit with three digits.
func amount(weight uint64, unit string) string {
	switch unit {
	case "nanoseconds":
		return duration64(weight)
	case "bytes":
		return size(weight)
	}
	return grouped(weight)
}

// duration64 formats a weight in ns.
func duration64(ns uint64) string { return duration(time.Duration(min(ns, 1<<63-1))) }

func duration(d time.Duration) string {
	digits := func(v float64, unit string) string {
		switch {
		case v < 9.995:
			return fmt.Sprintf("%.2f%s", v, unit)
		case v < 99.95:
			return fmt.Sprintf("%.1f%s", v, unit)
		}
		return fmt.Sprintf("%.0f%s", v, unit)
	}
	switch {
	case d == 0:
		return "0"
	case d < 999_500:
		return digits(float64(d)/1e3, "µs")
	case d < 999_500_000:
		return digits(float64(d)/1e6, "ms")
	case d < 10*time.Minute:
		return digits(d.Seconds(), "s")
	}
	d = d.Round(time.Second)
	if d < 100*time.Hour {
		return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh", int(d.Hours()))
}

func size(n uint64) string {
	v := float64(n)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if v < 999.5 {
			if unit == "B" || v >= 99.95 {
				return fmt.Sprintf("%.0f %s", v, unit)
			}
			return fmt.Sprintf("%.1f %s", v, unit)
		}
		v /= 1024
	}
	return fmt.Sprintf("%.1f TiB", v)
}

func plural(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// shorten cuts s to width columns. The end of a name carries most information, so the beginning is
// cut off; width 0 means no limit.
func shorten(s string, width int) string {
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	if width == 1 {
		return "…"
	}
	r := []rune(s)
	return "…" + string(r[len(r)-width+1:])
}
