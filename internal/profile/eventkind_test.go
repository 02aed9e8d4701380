package profile

import "testing"

// TestEventKindOf checks what names stand for in files that do not say their events' kinds.
func TestEventKindOf(t *testing.T) {
	for name, want := range map[string]EventKind{
		"cpu": EventCPU, "cpu:u": EventCPUPart, "cpu-clock:ppp": EventCPUPart, "task-clock": EventCPUPart, "itimer": EventCPUPart,
		"cycles:P": EventCycles, "cpu-cycles": EventCycles,
		"time": EventTime, "wall": EventWall, "off-cpu": EventOffCPU, "offcpu-time": EventOffCPU,
		"execution": EventExecution, "samples": EventSamples,
		"alloc": EventAlloc, "inuse_space": EventLive, "lock": EventLock, "park": EventWait,
		"uprobe:libc.so.6:malloc": EventProbe,
		// These are tracepoints, whatever the kernel calls the part of it that they are in.
		"lock:contention_begin": EventOther, "sched:sched_switch": EventOther,
		"page-faults": EventOther, "": EventOther,
	} {
		if got := EventKindOf(name); got != want {
			t.Errorf("%q is %v, want %v", name, got, want)
		}
	}
}

// TestEventKindNames checks that a kind is read back from what files call it, and that an unknown one
// is that of the event's name.
func TestEventKindNames(t *testing.T) {
	seen := map[string]bool{}
	for k := range NumEventKinds {
		if got := StoredEventKind(k.String(), "cpu"); got != k || seen[k.String()] {
			t.Errorf("%v is read as %v", k, got)
		}
		seen[k.String()] = true
	}
	for _, kind := range []string{"", "from a later version"} {
		if got := StoredEventKind(kind, "cpu"); got != EventCPU {
			t.Errorf("%q of cpu is read as %v", kind, got)
		}
	}
}
