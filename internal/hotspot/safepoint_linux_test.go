package hotspot

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// While a thread does not come to a safepoint, the VM is seen to wait for it.
func TestSafepoint(t *testing.T) {
	forMajors(t, func(t *testing.T, major int) {
		t.Parallel()
		flags := []string{"-XX:-UseCountedLoopSafepoints"}
		if major >= 11 {
			flags = append(flags, "-XX:LoopStripMiningIter=0")
		}
		p := startProgram(t, major, append(flags, "Unsafepoint")...)
		vm := openVM(t, p)
		var looping uint32
		for tid, name := range vm.ThreadNames() {
			if name == "looping" {
				looping = uint32(tid)
			}
		}
		if major == 8 { // its library has no symbols
			if _, err := vm.Safepoint(); err == nil || !strings.Contains(err.Error(), "stripped") {
				t.Errorf("the state of a safepoint that cannot be seen: %v", err)
			}
		} else {
			// On a busy machine another thread may still be on its way to the safepoint,
			// waiting for a CPU: then the VM does wait for that one too.
			waited, exact, since := 0, 0, time.Duration(0)
			for end := time.Now().Add(2 * time.Minute); waited < 20 || exact == 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("a wait for a safepoint was seen %d times, %d of them for the loop alone", waited, exact)
				}
				s, err := vm.Safepoint()
				if err != nil {
					t.Fatal(err)
				}
				if s.State != Synchronizing {
					continue
				}
				waited++
				in := vm.Census().InJava()
				if again, _ := vm.Safepoint(); again != s {
					continue // it is over
				}
				if !slices.Contains(in, looping) {
					t.Errorf("it waits for %v, it should for %d", in, looping)
				}
				if len(in) == 1 {
					exact++
				}
				if s.Operation != "VM_G1CollectFull" {
					t.Errorf("it is for %q", s.Operation)
				}
				var now unix.Timespec
				if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
					t.Fatal(err)
				}
				since = max(since, s.Since(now.Nano()))
			}
			if major >= 17 && (since < 20*time.Millisecond || since > time.Minute) {
				t.Errorf("it waited for %v at most", since)
			}
			t.Logf("%d looks while it waited, for %v at most", waited, since)
		}
		// It is nowhere else, but for the moments of the collections, and when it begins.
		s, ok := vm.ThreadState(looping)
		for end := time.Now().Add(time.Minute); s.VM != VMInJava && time.Now().Before(end); s, ok = vm.ThreadState(looping) {
			time.Sleep(10 * time.Millisecond)
		}
		if !ok || s.VM != VMInJava {
			t.Errorf("the thread in the loop is %s", s.VM)
		}
	})
}
