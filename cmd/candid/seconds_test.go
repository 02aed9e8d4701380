package main

import (
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30": 30 * time.Second, "30s": 30 * time.Second, "0.5": 500 * time.Millisecond, "1m30s": 90 * time.Second,
		"250ms": 250 * time.Millisecond, "0": 0, "-3": -3 * time.Second,
	} {
		d := time.Hour
		if err := (seconds{&d}).Set(text); err != nil || d != want {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
	for _, text := range []string{"", "x", "30 s", "3q", "1e300", "NaN", "Inf", "-Inf"} {
		d := time.Hour
		if err := (seconds{&d}).Set(text); err == nil || d != time.Hour {
			t.Errorf("%q is taken: %v", text, d)
		}
	}
}
