package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// act makes the test binary one of the programs that tests profile. All of them print "ready" and
// end when their standard input does.
func act(what string) {
	told := make(chan bool, 1) // a line was written to it
	go func() {
		for in := bufio.NewReader(os.Stdin); ; {
			if _, err := in.ReadString('\n'); err != nil {
				os.Exit(0)
			}
			select {
			case told <- true:
			default:
			}
		}
	}()
	what, arg, _ := strings.Cut(what, " ")
	switch what {
	case "spin":
		fmt.Println("ready")
		spinUntil(time.Now().Add(time.Hour))
	case "unbroken": // one thread runs all the time, if GODEBUG and GOGC make sure that nothing interrupts it
		fmt.Println("ready")
		for {
			spun = spun*31 + 1
		}
	case "idle":
		fmt.Println("ready")
		select {}
	case "tick": // uses CPU time and shows that it goes on
		fmt.Println("ready")
		for n := 0; ; n++ {
			spinUntil(time.Now().Add(5 * time.Millisecond))
			fmt.Println("tick", n)
		}
	case "syscalls":
		fmt.Println("ready")
		readZeros()
	case "threads":
		n, _ := strconv.Atoi(arg)
		manyThreads(n)
	case "churn":
		churn()
	case "exec": // spins until it reads a line, then becomes a shell that counts
		fmt.Println("ready")
		for len(told) == 0 {
			spinUntil(time.Now().Add(time.Millisecond))
		}
		err := syscall.Exec("/bin/sh", []string{"sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"}, os.Environ())
		fmt.Println(err)
	case "split": // two functions share its CPU time in that ratio, and it prints the shares
		red, blue, _ := strings.Cut(arg, ":")
		r, _ := strconv.Atoi(red)
		b, _ := strconv.Atoi(blue)
		split(r, b)
	case "for": // spins until it reads a line and for that long after it, and ends with code 3
		d, _ := time.ParseDuration(arg)
		fmt.Println("ready")
		for len(told) == 0 {
			spinUntil(time.Now().Add(time.Millisecond))
		}
		spinUntil(time.Now().Add(d))
		os.Exit(3)
	}
}

var spun uint64

//go:noinline
func spinUntil(end time.Time) {
	for time.Now().Before(end) {
		for i := range uint64(20000) {
			spun = spun*31 + i
		}
	}
}

// split runs until it has used a second of CPU time and prints what each function used by
// the thread's own clock, in ns.
func split(red, blue int) {
	runtime.LockOSThread()
	clock := func() time.Duration {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return time.Duration(now.Nano())
	}
	var used [2]time.Duration
	for begin := clock(); clock()-begin < time.Second; {
		t := clock()
		spinRed(red)
		u := clock()
		spinBlue(blue)
		used[0], used[1] = used[0]+u-t, used[1]+clock()-u
	}
	fmt.Println(int64(used[0]), int64(used[1]))
	os.Exit(0)
}

//go:noinline
func spinRed(n int) {
	for i := range uint64(n) * 20000 {
		spun = spun*31 + i
	}
}

//go:noinline
func spinBlue(n int) {
	for i := range uint64(n) * 20000 {
		spun = spun*31 + i
	}
}

func readZeros() {
	f, err := os.Open("/dev/zero")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	buf := make([]byte, 1<<16)
	for {
		if _, err := f.Read(buf); err != nil {
			os.Exit(1)
		}
	}
}

// manyThreads runs n threads that each work now and then.
func manyThreads(n int) {
	started := make(chan bool)
	for range n {
		go func() {
			runtime.LockOSThread()
			started <- true
			for {
				spinUntil(time.Now().Add(100 * time.Microsecond))
				time.Sleep(300 * time.Millisecond)
			}
		}()
	}
	for range n {
		<-started
	}
	fmt.Println("ready")
	select {}
}

// churn starts threads that live for 2 ms, one after the other.
func churn() {
	fmt.Println("ready")
	for {
		done := make(chan bool)
		go func() {
			runtime.LockOSThread() // without an unlock the thread ends too
			spinUntil(time.Now().Add(2 * time.Millisecond))
			close(done)
		}()
		<-done
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
