package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/capture/engines"
	"github.com/candid-profiler/candid/internal/live"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/report"
	"github.com/candid-profiler/candid/internal/tui"
)

type topFlags struct {
	pids     []string
	all      bool
	children bool
	duration time.Duration
	freq     float64
	interval time.Duration
	event    string
	engine   string
	once     bool
	json     bool
	rows     int
	output   string
	noFlags  bool
	nice     bool // --nice
}

// onceDuration is how long --once samples by default.
const onceDuration = 2 * time.Second

func newTop() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top [-p PID | -a | [--] COMMAND ARG...]",
		Short: "Show live where the time goes, in the terminal",
		Long: `Show the methods and threads that use a running process's time, live: self and
total of the last seconds and since the start, with sorting, a filter, callers,
and a view that can be frozen. Press ? for the keys, q to quit. Of time that was spent
waiting (-e wall) it is said who waits, as reports do.

The targets are not stopped, changed or prepared. Memory is bounded however long
candid looks on. When the target ends the last table stays until q is pressed.

A program that candid launches has neither the terminal nor input, and what it
prints is discarded, or added to the file that --output names. If it still runs
when you have seen enough it is asked to end (SIGTERM), and candid waits for that.
The exit code is the program's own if it ended by itself. To watch a program that
needs the terminal start it elsewhere and use -p.

With --once nothing is drawn: candid samples for -d, prints one table and exits.
The JSON has the schema ` + live.Schema + `: event, all, quality, lost; methods, each
with self and total; threads, each with its hottest method, or who waits in it; waits.
Fields may be added, none changes its meaning.`,
		Example: `  candid top -p 1234                          watch a process
  candid top -a                               watch the whole machine
  candid top -p 1234 -e wall                  also threads that wait
  candid top --output app.log -- java -jar app.jar
  candid top -p 1234 --once                   one table of the next two seconds
  candid top -p 1234 --once -d 10s --json | jq -r '.methods[0].name'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runTop(cmd, &f, args)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringSliceVarP(&f.pids, "pid", "p", nil, "`PID` of a process to look at; may be repeated")
	fl.BoolVarP(&f.all, "all", "a", false, "look at the whole machine")
	fl.BoolVar(&f.children, "children", false, "also look at the processes that the targets start")
	secondsVar(fl, &f.duration, "duration", "d", "stop sampling after a `TIME` such as 30s, or seconds (default with --once: 2s)")
	hertzVar(fl, &f.freq)
	fl.VarP(span{&f.interval}, "interval", "i", "CPU `TIME` between samples, such as 10ms; instead of -F")
	fl.StringVarP(&f.event, "event", "e", "cpu", "`NAME` of what to sample by, as for record")
	fl.StringVar(&f.engine, "engine", "auto", "`HOW` to sample: "+strings.Join(append([]string{"auto"}, engines.Names()...), ", "))
	fl.BoolVar(&f.once, "once", false, "print one table and exit")
	fl.BoolVar(&f.json, "json", false, "print JSON; with --once")
	fl.IntVar(&f.rows, "rows", 20, "`N` methods and threads at most; with --once, not for JSON")
	fl.StringVar(&f.output, "output", "", "add what a launched program prints to this `FILE`")
	fl.BoolVar(&f.nice, "nice", false, "take a better nice level than the targets while many threads want each CPU")
	fl.BoolVar(&f.noFlags, "no-jvm-flags", false, "launch java with just the arguments given")
	perfFlags(fl)
	takesCommand(cmd)
	return cmd
}

func (f *topFlags) options(cmd *cobra.Command, args []string) (record.Options, error) {
	pids, command, err := targets(cmd, &f.pids, args)
	if err != nil {
		return record.Options{}, err
	}
	if err := onlyOneWay(f.all, pids, command); err != nil {
		return record.Options{}, err
	}
	if err := enoughFiles("top"); err != nil {
		return record.Options{}, launchFailure(len(command) > 0, err)
	}
	o := record.Options{
		PIDs: pids, All: f.all, Command: command, NoJVMFlags: f.noFlags, Nice: f.nice, Children: f.children, Duration: f.duration, Hz: f.freq,
		Events: []string{f.event}, Engine: f.engine, Version: version(),
	}
	if err := rate(cmd, &o, f.interval); err != nil {
		return o, err
	}
	switch {
	case len(o.PIDs) == 0 && !o.All && len(command) == 0:
		return o, usage("nothing to look at: give -p PID, -a for the whole machine, or -- COMMAND to launch")
	case f.output != "" && len(command) == 0:
		return o, usage("--output is for what a launched program prints: give -- COMMAND too")
	case cmd.Flags().Changed("duration") && f.duration <= 0:
		return o, usage("duration %v is not above 0", f.duration)
	case f.json && !f.once:
		return o, usage("--json prints one table: give --once too")
	case f.rows <= 0:
		return o, usage("--rows %d is not above 0", f.rows)
	}
	if f.once && o.Duration == 0 {
		o.Duration = onceDuration
	}
	return o, recordFailure(o.Check())
}

func runTop(cmd *cobra.Command, f *topFlags, args []string) error {
	o, err := f.options(cmd, args)
	if err != nil {
		return err
	}
	command := o.Command
	if why := notDrawable(); why != "" && !f.once {
		return usage("%s; 'candid top --once' prints one table instead", why)
	}
	say := func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), "candid: "+profile.PlainText(line)) }
	heedPerf(cmd.Flags(), say)
	if len(command) > 0 {
		if o.Output, err = f.openOutput(); err != nil {
			return launchFailure(true, err)
		}
		defer o.Output.Close()
		if f.output == "" {
			say("what the program prints is discarded; --output FILE keeps it")
		}
	}
	confineTo(&o, false)
	var end ending
	if f.once {
		end, err = f.runOnce(cmd, o, say)
	} else {
		end, err = watch(cmd.Context(), o)
	}
	return endProgram(&o, end, notLaunched(cmd, command, err), say)
}

// notDrawable returns why there can be no live table, "" if there can.
func notDrawable() string {
	switch {
	case !isTerminal(os.Stdout):
		return "standard output is no terminal to draw a live table on"
	case os.Getenv("TERM") == "dumb":
		return "this terminal (TERM=dumb) cannot be drawn on"
	}
	return ""
}

// runOnce samples for a while and prints one table.
func (f *topFlags) runOnce(cmd *cobra.Command, o record.Options, say func(string)) (end ending, err error) {
	model := live.New()
	o.Live = model
	o.Log = say
	ctx, signals := interruptible(cmd.Context(), false, func() {})
	defer signals.stop()
	if end.res, end.err = record.Run(ctx, o); end.err != nil {
		return end, recordFailure(end.err)
	}
	t := model.Table(live.Query{Window: live.MaxWindow, Threads: true})
	if t.Since.Count.Samples == 0 {
		why := "the target used no CPU while it was looked at" + childrenHint(&o)
		if !t.CPUTime() {
			why = "nothing of " + f.event + " happened in the target while it was looked at"
		}
		return end, &codedError{exitNoSamples, errors.New("no samples: " + why)}
	}
	if f.json {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return end, failed(enc.Encode(t.Report(version())))
	}
	style := tui.Style{Rows: f.rows, Whole: f.all}
	style.Width, style.Color = report.Terminal(os.Stdout)
	return end, failed(tui.Once(cmd.OutOrStdout(), t, style))
}

// beginning is a model that signals when sampling begins.
type beginning struct {
	*live.Model
	begun chan struct{}
}

func (b beginning) Begin(x record.Begun) {
	b.Model.Begin(x)
	close(b.begun)
}

// watch draws the live table until the user quits. If candid cannot sample, that is reported before
// anything is drawn.
func watch(parent context.Context, o record.Options) (end ending, err error) {
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	model := live.New()
	start := beginning{model, make(chan struct{})}
	o.Live = start
	// Signals are caught from here on: a terminal is always restored.
	stop := make(chan os.Signal, 4)
	signal.Notify(stop, stopSignals...)
	defer signal.Stop(stop)
	ended := make(chan ending, 1)
	go func() {
		var out ending
		out.err = guarded(func() (err error) { out.res, err = record.Run(ctx, o); return err })
		ended <- out
	}()
	select {
	case <-start.begun:
	case end = <-ended:
		return end, recordFailure(end.err)
	case <-stop:
		cancel()
		end = <-ended
		return end, recordFailure(end.err)
	}
	program := tui.New(tui.Options{Model: model, Whole: o.All, State: threadState}).Program()
	last := make(chan ending, 1)
	go func() {
		out := <-ended
		program.Send(tui.Ended{Err: out.err, Over: o.Duration > 0 && model.Table(live.Query{}).Elapsed >= o.Duration})
		last <- out
	}()
	signalled := make(chan struct{})
	go func() {
		<-stop
		close(signalled)
		program.Quit()
	}()
	_, err = program.Run()
	cancel()
	end = <-last
	select {
	case <-signalled:
		err = nil // the terminal may have gone first
	default:
	}
	if err != nil {
		return end, failed(fmt.Errorf("draw on the terminal: %w; 'candid top --once' prints one table instead", err))
	}
	return end, recordFailure(end.err)
}

// guarded converts a panic to an error: a terminal that is drawn on has to be restored first.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("candid has a fault, please report it: %v", r)
		}
	}()
	return f()
}
