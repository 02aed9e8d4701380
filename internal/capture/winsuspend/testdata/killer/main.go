//go:build windows

// Command killer ends candid at random instants while it samples, and reports whether a thread of the
// target stays suspended: killer PID ROUNDS LIMIT candid|guard CANDID ARG.... No round
// begins when LIMIT, a duration, has passed. killer PID counts prints how often each thread of a
// process is suspended.
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/winsys"
)

type thread struct {
	tid    uint32
	handle windows.Handle
	before uint32
}

func main() {
	pid, _ := strconv.Atoi(os.Args[1])
	var s winsys.Snapshot
	if err := s.Take(); err != nil {
		fail("%v", err)
	}
	target := s.Process(uint32(pid))
	if target == nil {
		fail("no process %d", pid)
	}
	var threads []thread
	for _, t := range target.Threads {
		h, err := windows.OpenThread(windows.THREAD_QUERY_INFORMATION, false, t.TID)
		if err != nil {
			fail("open thread: %v", err)
		}
		n, ok := winsys.SuspendCount(h)
		if !ok {
			fail("the suspend count is not told")
		}
		threads = append(threads, thread{t.TID, h, n})
	}
	if os.Args[2] == "counts" {
		for _, th := range threads {
			fmt.Println(th.tid, th.before)
		}
		return
	}
	rounds, _ := strconv.Atoi(os.Args[2])
	limit, err := time.ParseDuration(os.Args[3])
	if err != nil {
		fail("%v", err)
	}
	caught, round := 0, 0
	for begin := time.Now(); round < rounds && time.Since(begin) < limit; round++ {
		if os.Args[4] == "guard" {
			killGuard(threads, round)
		} else if killCandid(threads, round) {
			caught++
		}
	}
	fmt.Printf("%d rounds of %d within %v, a thread stood in %d of them when candid had ended\n", round, rounds, limit, caught)
}

func fail(format string, args ...any) {
	fmt.Printf("FAIL "+format+"\n", args...)
	os.Exit(1)
}

// standing returns a thread that is suspended more often than it was at first.
func standing(threads []thread) *thread {
	for i := range threads {
		if n, ok := winsys.SuspendCount(threads[i].handle); ok && n != threads[i].before {
			return &threads[i]
		}
	}
	return nil
}

// sampled waits until candid has stopped a thread.
func sampled(threads []thread, round int) {
	for begin := time.Now(); standing(threads) == nil; {
		if time.Since(begin) > time.Minute {
			fail("round %d: candid was not seen to suspend a thread within a minute", round)
		}
	}
}

// settled waits until no thread stands any more.
func settled(threads []thread, round int) {
	for begin := time.Now(); ; {
		th := standing(threads)
		if th == nil {
			return
		}
		if time.Since(begin) > 20*time.Second {
			n, _ := winsys.SuspendCount(th.handle)
			fail("round %d: thread %d was suspended %d times before, and %d times now", round, th.tid, th.before, n)
		}
		time.Sleep(time.Millisecond)
	}
}

func start() (*exec.Cmd, windows.Handle) {
	c := exec.Command(os.Args[5], os.Args[6:]...)
	if err := c.Start(); err != nil {
		fail("start candid: %v", err)
	}
	h, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_TERMINATE, false, uint32(c.Process.Pid))
	if err != nil {
		fail("open candid: %v", err)
	}
	return c, h
}

func killCandid(threads []thread, round int) (caught bool) {
	c, h := start()
	sampled(threads, round)
	for end := time.Now().Add(rand.N(30 * time.Millisecond)); time.Now().Before(end); {
	}
	_ = windows.TerminateProcess(h, 3)
	_, _ = windows.WaitForSingleObject(h, windows.INFINITE)
	caught = standing(threads) != nil
	windows.CloseHandle(h)
	_ = c.Wait()
	settled(threads, round)
	return caught
}

// killGuard ends the guard and expects that candid goes on with another one.
func killGuard(threads []thread, round int) {
	c, h := start()
	defer windows.CloseHandle(h)
	sampled(threads, round)
	guard := guardOf(c.Process.Pid, 0)
	g, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_TERMINATE, false, uint32(guard))
	if err != nil {
		fail("open the guard: %v", err)
	}
	_ = windows.TerminateProcess(g, 3)
	_, _ = windows.WaitForSingleObject(g, windows.INFINITE)
	windows.CloseHandle(g)
	guardOf(c.Process.Pid, guard)
	time.Sleep(200 * time.Millisecond)
	sampled(threads, round)
	_ = windows.TerminateProcess(h, 3)
	_, _ = windows.WaitForSingleObject(h, windows.INFINITE)
	_ = c.Wait()
	settled(threads, round)
}

// guardOf returns the process that candid has started, other than one.
func guardOf(candid, other int) int {
	var s winsys.Snapshot
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if s.Take() != nil {
			continue
		}
		for i := range s.Processes {
			if p := &s.Processes[i]; int(p.Parent) == candid && int(p.PID) != other {
				return int(p.PID)
			}
		}
	}
	fail("candid has no guard")
	return 0
}
