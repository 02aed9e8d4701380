package perfevent

import (
	"os"
	"path/filepath"
	"strconv"
)

// watcherSlack is how late the thread may be woken that looks after Go's others, in ns.
const watcherSlack = 1_000_000

// easeWatcher lets that thread of the Go runtime be woken late which looks whether
// others are in system calls for long. While candid works on a batch, which is full of
// short ones, it sleeps for 20 µs at a time (50 times, then longer), and each time that it
// is woken takes a CPU from the program: for batches of some milliseconds as much as
// a tenth of what they cost. What it does may wait for a millisecond.
//
// That thread is the first that the runtime begins (runtime.main in runtime/proc.go).
// Where thread numbers have begun anew it may be another, which then sleeps as
// inexactly. Threads that it begins sleep as inexactly too, and would hand that on to
// programs: an engine that waits for Go's timers or starts programs should not ask for
// this. Without CAP_SYS_NICE nothing changes.
func easeWatcher() {
	tid := watcher()
	if tid == 0 {
		return
	}
	// Not below /proc/self/task, but there (fs/proc/base.c: tgid_base_stuff).
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

// watcher is the oldest of candid's threads but the first; 0: there is none.
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
