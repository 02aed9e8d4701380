package perfevent

import (
	"os"
	"path/filepath"
	"strconv"
)

// watcherSlack is the timer slack, in ns, of the thread that monitors Go's other threads (sysmon).
const watcherSlack = 1_000_000

// easeWatcher lets the wakeups of the Go runtime's monitor thread (sysmon) be late, which checks
// whether other threads have been in system calls for long. While candid works on a batch, which is
// full of short ones, that thread sleeps for 20 µs at a time (50 times, then longer), and each time
// that it is woken takes a CPU from the program: for batches of some milliseconds as much as a
// tenth of their cost. Its work may wait for a millisecond.
//
// The monitor is the first thread that the runtime starts (runtime.main in runtime/proc.go). If
// thread IDs have wrapped around it may be another one, which then sleeps as inexactly. Threads
// that it starts inherit the slack, and would pass it on to programs: an engine that relies on Go's
// timers or starts programs should not use this. Without CAP_SYS_NICE nothing changes.
func easeWatcher() {
	tid := watcher()
	if tid == 0 {
		return
	}
	// The file is not below /proc/self/task, but below /proc/TID (fs/proc/base.c: tgid_base_stuff).
	f, err := os.OpenFile(slackFile(tid), os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(strconv.Itoa(watcherSlack))
}

func slackFile(tid int) string {
	return filepath.Join("/proc", strconv.Itoa(tid), "timerslack_ns")
}

// watcher returns the oldest of candid's threads except for the first; 0 if there is none.
func watcher() int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0
	}
	oldest := 0
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil && tid > os.Getpid() && (oldest == 0 || tid < oldest) {
			oldest = tid
		}
	}
	return oldest
}
