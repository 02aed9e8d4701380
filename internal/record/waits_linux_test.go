package record

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// Each way in which a Java thread waits has its own state, for threads that wait during the whole
// recording.
func TestJavaWaits(t *testing.T) {
	for _, major := range []int{8, 17, 25} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel() // the threads wait, and so does candid
			classes := fixture.Classes(t, major, filepath.Join("testdata", "Waits.java"))
			p := fixture.Start(t, exec.Command(fixture.JDKTool(t, major, "java"), "-Xmx64m", "-cp", classes, "Waits"))
			p.Await("ready")
			for _, engine := range []string{"auto", "suspend"} {
				awake := awakeTimes(t, p.PID())
				profile := run(t, Options{PIDs: []int{p.PID()}, Engine: engine, Events: []string{"wall"}, Duration: 2 * time.Second}).Profile
				for tid, after := range awakeTimes(t, p.PID()) {
					awake[tid] = after - awake[tid]
				}
				checkJavaWaits(t, engine, profile, awake)
			}
		})
	}
}

// awakeTimes returns how long each thread of a process has run or waited for a CPU until now, by
// the kernel's account, in ns.
func awakeTimes(t *testing.T, pid int) map[int]uint64 {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]uint64{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		tid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		var ran, waited uint64
		if _, err := fmt.Sscan(string(b), &ran, &waited); err != nil {
			t.Fatal(err)
		}
		out[tid] = ran + waited
	}
	return out
}

// checkJavaWaits checks the states; awake is how long threads ran or waited for a CPU.
func checkJavaWaits(t *testing.T, engine string, p *profile.Profile, awake map[int]uint64) {
	t.Helper()
	states, tids := map[string]map[profile.State]uint64{}, map[string]int{}
	for i := range p.Samples {
		s := &p.Samples[i]
		name := p.Threads[s.Thread].Name
		if states[name] == nil {
			states[name] = map[profile.State]uint64{}
		}
		tids[name] = p.Threads[s.Thread].TID
		states[name][s.State] += s.Weight
	}
	for name, want := range map[string]profile.State{
		"parker": profile.StateParked, "waiter": profile.StateWaiting, "enterer": profile.StateBlocked,
		"sleeper": profile.StateSleeping, "main": profile.StateSleeping,
	} {
		all := uint64(0)
		for _, time := range states[name] {
			all += time
		}
		// On a busy machine it takes a while until recording begins, and threads that the VM wakes
		// up wait for a CPU.
		if got := states[name][want]; got+awake[tids[name]] < all*95/100 || got < all/4 || all < uint64(time.Second)/2 {
			t.Errorf("%s: %s is %v for %v of %v: %v", engine, name, want, time.Duration(got), p.Meta.Duration, states[name])
		}
	}
}
