package hotspot

import (
	"slices"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/hotspot/threads"
	"golang.org/x/sys/unix"
)

// While a thread does not come to a safepoint, the VM is seen waiting for it.
func TestSafepoint(t *testing.T) {
	forMajors(t, func(t *testing.T, major int) {
		t.Parallel()
		flags := []string{"-XX:-UseCountedLoopSafepoints"}
		if major >= 11 {
			flags = append(flags, "-XX:LoopStripMiningIter=0")
		}
		begun := time.Now()
		p := startProgram(t, major, append(flags, "Unsafepoint")...)
		vm := openVM(t, p)
		var looping uint32
		for tid, name := range vm.Threads.ThreadNames() {
			if name == "looping" {
				looping = uint32(tid)
			}
		}
		// On a busy machine another thread may still be on its way to the safepoint, waiting for a
		// CPU: then the VM waits for that one too, or for no other.
		waited, exact, named, since := 0, 0, 0, time.Duration(0)
		for end := time.Now().Add(2 * time.Minute); waited < 20 || exact == 0 || major > 8 && (named == 0 || since < 20*time.Millisecond); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("a wait for a safepoint was seen %d times, %d of them for the loop, %d with what it is for, for %v at most", waited, exact, named, since)
			}
			s, err := vm.Threads.Safepoint()
			if err != nil {
				t.Fatal(err)
			}
			if s.State != threads.Synchronizing {
				continue
			}
			waited++
			in := vm.Threads.DumpThreads().InJava()
			if again, _ := vm.Threads.Safepoint(); again != s {
				continue // it is over
			}
			// It may have reached the safepoint before others did, and up to 11 a thread that came
			// while the VM still looks at them counts as being in the VM.
			if slices.Contains(in, looping) && (len(in) == 1 || major <= 11) {
				exact++
			}
			switch s.Operation {
			case "VM_G1CollectFull":
				named++
			case "": // up to 11 the VM also stops for no operation, once a second
			default:
				t.Errorf("it is for %q", s.Operation)
			}
			var now unix.Timespec
			if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
				t.Fatal(err)
			}
			since = max(since, s.Since(now.Nano()))
		}
		if lived := time.Since(begun); since > lived {
			t.Errorf("it waited for %v in %v", since, lived)
		}
		t.Logf("%d looks while it waited, for %v at most", waited, since)
		// It is in no other state, except during collections and at its start.
		s, ok := vm.Threads.ThreadState(looping)
		for end := time.Now().Add(time.Minute); s.VM != threads.VMInJava && time.Now().Before(end); s, ok = vm.Threads.ThreadState(looping) {
			time.Sleep(10 * time.Millisecond)
		}
		if !ok || s.VM != threads.VMInJava {
			t.Errorf("the thread in the loop is %s", s.VM)
		}
	})
}
