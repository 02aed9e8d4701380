package main

import (
	"fmt"
	"io"
	"math"
	"time"
)

// suspend compares what the suspend engine sees of the truth program with what perf events see of
// the same run at the same time.
func (b *bench) suspend() {
	secs := b.seconds(60)
	r := row{
		Section: "suspend", Unit: "%", Bar: "≤ 1 %",
		What: fmt.Sprintf("total variation distance of the suspend engine's phases to the perf engine's, same run, JDK 17, 1 kHz, %d s", secs),
	}
	var err error
	if r.Value, r.Note, err = b.suspendDistance(time.Duration(secs) * time.Second); err != nil {
		r.Failed = err.Error()
	}
	b.add(r)
	b.stops()
}

func (b *bench) suspendDistance(d time.Duration) (float64, string, error) {
	cp, err := b.compile("17", "Truth.java")
	if err != nil {
		return 0, "", err
	}
	p, err := start("ready", b.java("17"), "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints", "-cp", cp, "Truth", "3600", "wait")
	if err != nil {
		return 0, "", err
	}
	defer p.stop()
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		return 0, "", err
	}
	type result struct {
		rec *recording
		err error
	}
	perf := make(chan result, 1)
	go func() {
		rec, err := b.attachTo(p.pid(), d, "-F", "1000", "--engine", "perf")
		perf <- result{rec, err}
	}()
	mine, err := b.attachTo(p.pid(), d, "-F", "1000", "--engine", "suspend")
	other := <-perf
	if err != nil {
		return 0, "", err
	}
	if other.err != nil {
		return 0, "", other.err
	}
	seen, all, lost := phases(mine.profile)
	want, wantAll, _ := phases(other.rec.profile)
	if all == 0 || wantAll == 0 {
		return 0, "", fmt.Errorf("no sample shows a phase")
	}
	distance, chance := 0.0, 0.0
	worst, worstBy := "", 0.0
	n, wantN := float64(len(mine.profile.Samples)), float64(len(other.rec.profile.Samples))
	for phase, v := range want {
		share := v / wantAll
		off := seen[phase]/all - share
		distance += math.Abs(off) / 2
		// This is the mean of |off| if only chance is at work.
		chance += math.Sqrt(2/math.Pi*share*(1-share)*(1/n+1/wantN)) / 2
		if math.Abs(off) > math.Abs(worstBy) {
			worst, worstBy = phase, off
		}
	}
	return 100 * distance, fmt.Sprintf("%.0f samples against %.0f; chance alone would make %.2f %%; furthest off: %s by %+.2f points; weight %.3f of perf's; stacks cut below the phase: %.3f %%; own CPU %.0f µs a sample",
		n, wantN, 100*chance, worst, 100*worstBy, all/wantAll, 100*lost/(all+lost), mine.summary.OwnCPU/1e3/n), nil
}
