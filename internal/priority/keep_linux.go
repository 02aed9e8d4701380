package priority

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture/perfevent"
)

// lookEvery is the interval at which the crowd is measured.
const lookEvery = time.Second

// base is one more than the level that candid's children should have, as the kernel encodes levels
// (20 minus the nice level); 0 means that it is candid's own level.
var base atomic.Int32

// Keep adjusts candid's level until stop is called, which restores the original one. tell is called
// when the level is changed and when it cannot be changed, at most once for each; it may be called
// from another goroutine before stop returns. Only one Keep may be active at a time.
//
// A candid that was started at a nice level above 0 keeps it: somebody wanted it so.
func Keep(tell func(Report)) (stop func()) {
	k := &keeper{tell: tell, runnable: Runnable, set: setAll, end: make(chan struct{})}
	p, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || p < levelZero || !base.CompareAndSwap(0, int32(p)+1) {
		return func() {}
	}
	k.base = levelZero - p
	k.now = k.base
	k.look()
	var done sync.WaitGroup
	done.Go(k.run)
	return func() {
		close(k.end)
		done.Wait()
		if k.now != k.base {
			_, _ = setAll(k.base)
		}
		base.Store(0)
	}
}

// levelZero is nice level 0 as the system call returns it.
const levelZero = 20

// Child gives a process that candid has started the level that candid had originally. Errors are
// ignored: the process has ended, or its level is already right.
func Child(pid int) {
	if b := base.Load(); b != 0 {
		_ = unix.Setpriority(unix.PRIO_PROCESS, pid, levelZero-int(b-1))
	}
}

type keeper struct {
	tell      func(Report)
	runnable  func() (threads, cpus int, err error)
	set       func(nice int) (got int, err error)
	base, now int
	raised    bool // tell was called for it
	refused   bool // tell was called for it
	end       chan struct{}
}

func (k *keeper) run() {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-k.end:
			return
		case <-t.C:
			k.look()
		}
	}
}

// look measures the crowd and changes the level if that helps.
func (k *keeper) look() {
	n, cpus, err := k.runnable()
	if err != nil {
		return
	}
	want := min(next(k.now, n, cpus), k.base)
	if want == k.now && want == k.base {
		return
	}
	// The level is set even if it does not change: threads may have been started by one that had
	// not been reached yet.
	got, err := k.set(want)
	if k.now = got; want >= k.base {
		return
	}
	t := Report{n, cpus, want, got}
	if told := &k.raised; !t.Refused() && !*told {
		*told = true
		k.tell(t)
	} else if told := &k.refused; t.Refused() && err != nil && !*told {
		*told = true
		k.tell(t)
	}
}

// Runnable returns how many threads want a CPU on this machine now, including those that are
// running, and how many CPUs there are.
func Runnable() (threads, cpus int, err error) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, 0, err
	}
	n, ok := parseRunnable(b)
	if !ok {
		return 0, 0, errors.New("/proc/loadavg makes no sense")
	}
	list, err := perfevent.OnlineCPUs()
	return n, max(len(list), 1), err
}

// Own returns the nice level of candid.
func Own() int {
	p, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return levelZero - p
}

// Best returns the best nice level that candid may set.
func Best() int {
	best := Own()
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NICE, &lim) == nil {
		best = min(best, max(levelZero-int(min(lim.Cur, 40)), -20))
	}
	// The effective set shows whether candid has the capability.
	const sysNice = 23 // CAP_SYS_NICE
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&hdr, &data[0]) == nil && data[0].Effective>>sysNice&1 != 0 && inFirstUserNS() {
		best = -20
	}
	return best
}

// inFirstUserNS reports whether capabilities that candid holds count for nice levels: the kernel
// checks them in the initial user namespace, whose inode is always the same
// (include/linux/proc_ns.h).
func inFirstUserNS() bool {
	const first = 0xEFFFFFFD
	var st unix.Stat_t
	return unix.Stat("/proc/self/ns/user", &st) == nil && st.Ino == first
}

// setAll sets the level of all of candid's threads. If that is refused, it sets the best level that
// they may have and returns the refusal as the error.
func setAll(nice int) (int, error) {
	best := Best()
	var refused error
	if best > nice {
		nice, refused = best, unix.EACCES
	}
	// Threads that are started meanwhile inherit the level of the thread that started them.
	for range 3 {
		changed, err := setOnce(nice)
		if err != nil {
			refused = err
		}
		if !changed {
			break
		}
	}
	return Own(), refused
}

// setOnce goes over the threads once and reports whether any of them had another level.
func setOnce(nice int) (changed bool, err error) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false, err
	}
	for _, t := range tasks {
		tid, e := strconv.Atoi(t.Name())
		if e != nil {
			continue
		}
		if p, e := unix.Getpriority(unix.PRIO_PROCESS, tid); e != nil || levelZero-p == nice {
			continue
		}
		if e := unix.Setpriority(unix.PRIO_PROCESS, tid, nice); e == nil {
			changed = true
		} else if !errors.Is(e, unix.ESRCH) {
			err = e
		}
	}
	return changed, err
}
