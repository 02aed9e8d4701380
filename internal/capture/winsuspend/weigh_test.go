package winsuspend

import "testing"

// A thread's CPU time is divided among its samples without a rest, including the time that was
// counted before the first of them.
func TestAccount(t *testing.T) {
	var a account
	if out := a.count(5, nil); len(out) != 0 || a.owed != 5 {
		t.Fatalf("without a sample: %d samples, %d ns owed", len(out), a.owed)
	}
	for range 3 {
		if a.take(&sample{}) != nil {
			t.Fatal("dropped one of three")
		}
	}
	out := a.count(10_000_000, nil)
	var sum uint64
	for _, s := range out {
		if sum += s.snap.Weight; s.snap.Weight < 3_333_334 || s.snap.Weight > 3_333_336 {
			t.Errorf("weight %d", s.snap.Weight)
		}
	}
	if len(out) != 3 || sum != 10_000_005 || a.owed != 0 || len(a.waiting) != 0 {
		t.Errorf("%d samples with %d ns; %d owed, %d wait", len(out), sum, a.owed, len(a.waiting))
	}
	for i := range mostWaiting + 2 {
		if dropped := a.take(&sample{}); (dropped != nil) != (i >= mostWaiting) {
			t.Fatalf("sample %d: dropped %v", i, dropped != nil)
		}
	}
	if out = a.count(0, nil); len(out) != 0 {
		t.Error("samples without time")
	}
}
