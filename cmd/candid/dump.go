package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/dump"
	"github.com/candid-profiler/candid/internal/priority"
	"github.com/candid-profiler/candid/internal/runtimes"
)

func newDump() *cobra.Command {
	var (
		pids     []string
		thread   string
		onlyJava bool
		asJSON   bool
		repeat   int
		interval time.Duration
		async    bool
		limits   = runtimes.AsyncLimits{Time: 5 * time.Second}
		heap     = bytesFlag{4 << 30}
	)
	cmd := &cobra.Command{
		Use:   "dump [-p] PID...",
		Short: "Show every thread's stack now, without stopping the program",
		Long: `Show what every thread does now: its stack with kernel, native and Java frames,
its state, the CPU time that it has used, and in a Java program what it waits for
and who holds that.

` + dumpDisturbs() + ` The program is asked
for nothing, so this works where jstack hangs: a JVM that does not come to a
safepoint, one that is stopped, one without an attach socket.

The threads are looked at one after the other, not at the very same moment; those
that ran meanwhile are looked at again until the locks and the stacks of all belong
together, and who still ran then says so. Virtual threads are shown while they are
mounted. The JSON has the schema ` + dump.Schema + `: processes, each with threads, each with its
frames, innermost first; a line for each look with --repeat. If no thread matches
--thread, the exit code is 5.

` + dumpAsync,
		Example: `  candid dump -p 1234                        every thread of a process
  candid dump -p 1234 --thread 'http-.*'     those with such a name
  candid dump -p 1234 --java                 only Java frames, as jstack
  candid dump -p 1234 --repeat 10 --interval 1s
  candid dump -p 1234 --async                and the .NET methods that await something
  candid dump -p 1234 --json | jq '.processes[0].threads[] | select(.java.state=="BLOCKED").name'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o := dump.Options{JavaFrames: onlyJava}
			stop := make(chan os.Signal, 1)
			var err error
			if o.PIDs, err = given(&pids, args); err != nil {
				return err
			}
			switch {
			case len(o.PIDs) == 0:
				return usage("the threads of what? give -p PID ('candid ps' lists processes)")
			case repeat < 1:
				return usage("--repeat %d is not above 0", repeat)
			case interval < 0:
				return usage("--interval %v is below 0", interval)
			}
			if thread != "" {
				if o.Threads, err = regexp.Compile(thread); err != nil {
					return usage("--thread: %v", err)
				}
			}
			for _, name := range []string{"async-time", "async-bytes"} {
				if cmd.Flags().Changed(name) && !async {
					return usage("--%s bounds --async, which is not given", name)
				}
			}
			if limits.Bytes = uint64(heap.sizeFlag); async {
				if limits.Time <= 0 {
					return usage("--async-time %v is not above 0", limits.Time)
				}
				limits.Stopped = func() bool { return len(stop) > 0 }
				o.Async = &limits
			}
			if err := enoughFiles("dump"); err != nil {
				return err
			}
			confineDump()
			tell, opened := priority.Held(func(t priority.Report) {
				if t.Refused() {
					fmt.Fprintln(cmd.ErrOrStderr(), "candid: "+t.String())
				}
			})
			defer priority.Keep(tell)()
			d, err := dump.New(o)
			if err != nil {
				return failed(err)
			}
			opened()
			defer d.Close()
			found, err := dumps(d, cmd.OutOrStdout(), repeat, interval, asJSON, stop)
			if err == nil && !found && o.Threads != nil {
				return &codedError{exitNoSamples, fmt.Errorf("no thread's name matches --thread %s; without it all are shown", thread)}
			}
			return failed(err)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringSliceVarP(&pids, "pid", "p", nil, "`PID` of a process to look at; may be repeated")
	fl.StringVar(&thread, "thread", "", "show only threads whose name matches this `REGEX`")
	fl.BoolVar(&onlyJava, "java", false, "of stacks with Java frames show only those, as jstack does")
	fl.IntVar(&repeat, "repeat", 1, "look `N` times")
	interval = time.Second
	secondsVar(fl, &interval, "interval", "", "`TIME` between two looks, such as 500ms, or seconds")
	fl.BoolVar(&async, "async", false, "show also the asynchronous methods of .NET that wait, and for what; reads the heap")
	secondsVar(fl, &limits.Time, "async-time", "", "read the heap for at most this `TIME`")
	fl.Var(&heap, "async-bytes", "read at most this `SIZE` of the heap: 512M, 8G")
	fl.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// dumpAsync says what --async shows.
const dumpAsync = `--async shows also the asynchronous methods of .NET 9 and 10 (on Linux) that have
begun and wait, as a tree by what they await, equal ones merged. Such a method is
on no stack, so the heap is read for that, without stopping the program:
--async-time and --async-bytes bound it. If a bound was reached, or the garbage
collector ran whenever the heap was read, that is said: there may be more then.`

// dumpDisturbs says which threads dump stops.
func dumpDisturbs() string {
	if runtime.GOOS == "windows" {
		return `Each thread is suspended by itself, for the microseconds that copying its
registers and its stack takes; kernel frames are not shown.`
	}
	return `Threads that sleep are read from outside and not stopped; one that runs stands
still for the microseconds that copying its stack takes.`
}

// dumps takes dumps as often as requested, until a signal comes, which it sends to stop, and reports whether there was any
// thread to show.
func dumps(d *dump.Dumper, out io.Writer, repeat int, interval time.Duration, asJSON bool, stop chan os.Signal) (found bool, err error) {
	signal.Notify(stop, stopSignals...)
	defer signal.Stop(stop)
	next := time.Now()
	for i := range repeat {
		if i > 0 {
			next = next.Add(interval)
			select {
			case <-stop:
				return found, nil
			case <-time.After(time.Until(next)):
			}
			if !asJSON {
				fmt.Fprintln(out)
			}
		}
		look, err := d.Take()
		if err != nil {
			return found, err
		}
		for i := range look.Processes {
			found = found || len(look.Processes[i].Threads) > 0
		}
		if asJSON {
			err = look.WriteJSON(out, repeat == 1)
		} else {
			err = look.WriteText(out)
		}
		if err != nil {
			return found, err
		}
	}
	return found, nil
}
