package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// byteUnits are the units of sizes, by powers of ten as in the name, and by powers of two with an i.
var byteUnits = []struct {
	name  string
	times float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"t", 1e12}, {"b", 1}, {"", 1},
}

// ParseBytes reads a size such as 200MB, 2GiB or 4096.
func ParseBytes(s string) (int64, error) {
	t := strings.ToLower(strings.TrimSpace(s))
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(t, u.name)
		if !ok || u.name == "" && number == "" {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(n >= 0) || n*u.times > math.MaxInt64/2 {
			break
		}
		return int64(n * u.times), nil
	}
	return 0, fmt.Errorf("%q is no size: write 200MB, 2GB or 512MiB", s)
}

// Bytes writes a size as ParseBytes reads it.
func Bytes(n int64) string {
	for _, u := range []struct {
		name  string
		times int64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if n >= u.times {
			return strconv.FormatFloat(float64(n)/float64(u.times), 'g', 4, 64) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// ParseDuration reads a time such as 60s, 50m, 12h or 7d, also put together: 1d12h.
func ParseDuration(s string) (time.Duration, error) {
	t := strings.TrimSpace(s)
	var days time.Duration
	if before, after, ok := strings.Cut(t, "d"); ok {
		n, err := strconv.ParseFloat(before, 64)
		if err != nil || !(n >= 0 && n <= 36500) {
			return 0, fmt.Errorf("%q is no time: write 30s, 50m, 12h or 7d", s)
		}
		days = time.Duration(n * 24 * float64(time.Hour))
		if t = after; t == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(t)
	if err != nil || d < 0 || d > math.MaxInt64/4 {
		return 0, fmt.Errorf("%q is no time: write 30s, 50m, 12h or 7d", s)
	}
	return days + d, nil
}

// Duration writes a time as ParseDuration reads it.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%time.Hour == 0 {
		s := fmt.Sprintf("%dd", d/day)
		if h := d % day / time.Hour; h > 0 {
			s += fmt.Sprintf("%dh", h)
		}
		return s
	}
	s := d.String()
	s = strings.TrimSuffix(s, "0s")
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	if s == "" || s[len(s)-1] >= '0' && s[len(s)-1] <= '9' {
		return d.String()
	}
	return s
}

// ParseShare reads a share such as 2% or 0.02.
func ParseShare(s string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		n /= 100
	}
	if err != nil || !(n >= 0 && n <= 1) {
		return 0, fmt.Errorf("%q is no share: write 2%%", s)
	}
	return n, nil
}
