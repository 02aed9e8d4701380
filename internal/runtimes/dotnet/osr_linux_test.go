package dotnet_test

import (
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/record"
)

// TestOnStackReplacement records a program that enters optimized code in the middle of a loop all the time:
// the runtime's code that does it changes to the new frame's stack while its unwind information describes
// another one.
func TestOnStackReplacement(t *testing.T) {
	for _, on := range dotnets {
		if on.windows || on.major == 8 || on.major == 10 && !fixture.Full(t) {
			continue // 8 has other code for it
		}
		assembly := on.compile(t, "testdata/Osr.cs")
		tooLittle := fixture.Watch(t)
		// Nothing is compiled again, so the first code of the method stays, and its loop is left soon.
		target := on.start(t, assembly, []string{"DOTNET_TC_CallCounting=0", "DOTNET_TC_OnStackReplacement_InitialCounter=10", "DOTNET_OSR_HitLimit=1"})
		p := recorded(t, record.Options{PIDs: []int{target.PID()}, Duration: 2500 * time.Millisecond, Hz: 999, Events: []string{"cpu"}})
		q := p.Quality()
		t.Logf("%v: %+v", on, q)
		if q.Samples < 400 {
			tooLittle("%d samples", q.Samples)
		} else if q.Complete*1000 < q.Samples*999 {
			t.Errorf("%v: %d of %d stacks are complete", on, q.Complete, q.Samples)
		}
	}
}
