package record

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/walk"
)

// Frames that are taken over from a thread's last walk are those that a whole walk of the same
// snapshot finds.
func TestWalkCacheIsTrue(t *testing.T) {
	for _, c := range []struct {
		major int
		args  []string
	}{
		{17, []string{"Deep"}},
		{17, []string{"-Xint", "Deep"}},
		{8, []string{"-XX:TieredStopAtLevel=1", "Deep"}},
		{25, []string{"-XX:+UseZGC", "Deep", "virtual"}},
	} {
		name := strconv.Itoa(c.major)
		for _, a := range c.args {
			name += " " + a
		}
		t.Run(name, func(t *testing.T) {
			classes := fixture.Classes(t, c.major, "-nowarn", filepath.Join("testdata", "Deep.java"))
			program := fixture.Start(t, exec.Command(fixture.JDKTool(t, c.major, "java"), append([]string{"-cp", classes}, c.args...)...))
			program.Await("ready")
			walks, frames, same, moved := 0, 0, 0, 0
			var whole walk.Stack
			o := Options{
				PIDs: []int{program.PID()}, Duration: 2 * time.Second, Hz: 3000,
				walked: func(w *walk.Walker, snap *capture.Snapshot, mem walk.Memory, got *walk.Stack) {
					walks, frames, same = walks+1, frames+len(got.Frames), same+got.Same
					if got.Same == 0 {
						return
					}
					trails := w.Cache
					w.Cache = nil
					w.Walk(snap, mem, &whole)
					w.Cache = trails
					if slices.Equal(whole.Frames, got.Frames) && whole.End == got.End && whole.Worst == got.Worst {
						return
					}
					// Frames that are not exact, and the continuation of a virtual thread's stack,
					// may be read from the running process, so two walks can differ if the test
					// waits for a CPU in between: a guess leads past frames that another one meets.
					// The frames taken over must be the same if both walks reached them by the same
					// way, and the whole one went on exactly.
					live := func(f walk.Frame) bool { return f.Prov != walk.Exact || f.Flags&(walk.Virtual|walk.Stitched) != 0 }
					if slices.ContainsFunc(whole.Frames, live) || slices.ContainsFunc(got.Frames, live) {
						moved++
						way, over := got.Frames[:len(got.Frames)-got.Same], got.Frames[len(got.Frames)-got.Same:]
						if len(whole.Frames) < len(way) || !slices.Equal(whole.Frames[:len(way)], way) {
							return
						}
						if rest := whole.Frames[len(way):]; whole.End == walk.EndComplete && !slices.ContainsFunc(rest, live) && !slices.Equal(rest, over) {
							t.Errorf("walk %d: the %d frames taken over are others: %+v, whole %+v", walks, got.Same, got.Frames, whole.Frames)
						}
						return
					}
					t.Errorf("walk %d: %d frames, %v, whole %d, %v; %d taken over", walks, len(got.Frames), got.End, len(whole.Frames), whole.End, got.Same)
					for i := range min(len(whole.Frames), len(got.Frames)) {
						if whole.Frames[i] != got.Frames[i] {
							t.Errorf("frame %d is %+v, whole %+v", i, got.Frames[i], whole.Frames[i])
							break
						}
					}
				},
			}
			run(t, o)
			t.Logf("%d walks, %d frames, %.0f %% of them taken over; %d walks were others the second time", walks, frames, 100*float64(same)/float64(max(1, frames)), moved)
			if moved*100 > walks {
				t.Errorf("%d of %d walks were others the second time", moved, walks)
			}
			// How much can be shared also depends on the machine's load, which makes batches of few
			// samples.
			if walks < 100 || same == 0 {
				t.Errorf("%d walks, %d of %d frames taken over", walks, same, frames)
			}
		})
	}
}
