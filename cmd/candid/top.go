package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/capture/engines"
	"github.com/candid-profiler/candid/internal/live"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/report"
	"github.com/candid-profiler/candid/internal/screen"
)

type topFlags struct {
	pids     []string
	all      bool
	children bool
	duration time.Duration
	freq     float64
	event    string
	engine   string
	once     bool
	json     bool
	rows     int
}

// onceDuration is how long --once samples unless it is told.
const onceDuration = 2 * time.Second

func newTop() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top [-p PID | -a]",
		Short: "Show live where the time goes, in the terminal",
		Long: `Show the methods and threads that use a running process's time, live: self and
total of the last seconds and since the start, with sorting, a filter, callers,
and a view that can be frozen. Press ? for the keys, q to quit.

The targets are not stopped, changed or prepared. Memory is bounded however long
candid looks on. When the target ends the last table stays until q is pressed.

With --once nothing is drawn: candid samples for -d, prints one table and exits.
The JSON has the schema ` + live.Schema + `: event, all, quality, lost; methods, each
with self and total; threads, each with its hottest method. Fields may be added,
none changes its meaning.`,
		Example: `  candid top -p 1234                          watch a process
  candid top -a                               watch the whole machine
  candid top -p 1234 -e wall                  also threads that wait
  candid top -p 1234 --once                   one table of the next two seconds
  candid top -p 1234 --once -d 10s --json | jq -r '.methods[0].name'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("top looks at what runs already: give -p PID; 'candid record -- %s' launches a program", args[0])
			}
			return runTop(cmd, &f)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringSliceVarP(&f.pids, "pid", "p", nil, "`PID` of a process to look at; may be repeated")
	fl.BoolVarP(&f.all, "all", "a", false, "look at the whole machine")
	fl.BoolVar(&f.children, "child", false, "also look at the processes that the targets start")
	fl.DurationVarP(&f.duration, "duration", "d", 0, "stop sampling after a `TIME` such as 30s (default with --once: 2s)")
	fl.Float64VarP(&f.freq, "freq", "F", record.DefaultHz, "samples per second of CPU time: `HZ`")
	fl.StringVarP(&f.event, "event", "e", "cpu", "`NAME` of what to sample by, as for record")
	fl.StringVar(&f.engine, "engine", "auto", "`HOW` to sample: "+strings.Join(append([]string{"auto"}, engines.Names()...), ", "))
	fl.BoolVar(&f.once, "once", false, "print one table and exit")
	fl.BoolVar(&f.json, "json", false, "print JSON; with --once")
	fl.IntVar(&f.rows, "rows", 20, "`N` methods and threads at most; with --once, not for JSON")
	return cmd
}

func (f *topFlags) options(cmd *cobra.Command) (record.Options, error) {
	o := record.Options{
		All: f.all, Children: f.children, Duration: f.duration, Hz: f.freq,
		Events: []string{f.event}, Engine: f.engine, Version: version(),
	}
	for _, p := range f.pids {
		pid, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil || pid <= 0 {
			return o, usage("%q is not a process id", p)
		}
		o.PIDs = append(o.PIDs, pid)
	}
	switch {
	case len(o.PIDs) == 0 && !o.All:
		return o, usage("nothing to look at: give -p PID, or -a for the whole machine")
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

func runTop(cmd *cobra.Command, f *topFlags) error {
	o, err := f.options(cmd)
	if err != nil {
		return err
	}
	if f.once {
		return f.runOnce(cmd, o)
	}
	if why := notDrawable(); why != "" {
		return usage("%s; 'candid top --once' prints one table instead", why)
	}
	return watch(cmd.Context(), o)
}

// notDrawable says why there can be no live table, "" if there can.
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
func (f *topFlags) runOnce(cmd *cobra.Command, o record.Options) error {
	model := live.New()
	o.Live = model
	o.Log = func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), "candid: "+line) }
	ctx, signals := interruptible(cmd.Context(), false, func() {})
	defer signals.stop()
	if _, err := record.Run(ctx, o); err != nil {
		return recordFailure(err)
	}
	t := model.Table(live.Query{Window: live.MaxWindow, Threads: true})
	if t.Since.Count.Samples == 0 {
		why := "the target used no CPU while it was looked at"
		if !t.CPUTime() {
			why = "nothing of " + f.event + " happened in the target while it was looked at"
		}
		return &codedError{exitNoSamples, errors.New("no samples: " + why)}
	}
	if f.json {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return failed(enc.Encode(t.Report(version())))
	}
	style := screen.Style{Rows: f.rows, Whole: f.all}
	style.Width, style.Color = report.Terminal(os.Stdout)
	return failed(screen.Once(cmd.OutOrStdout(), t, style))
}

// beginning is a model that tells when sampling begins.
type beginning struct {
	*live.Model
	begun chan struct{}
}

func (b beginning) Begin(x record.Begun) {
	b.Model.Begin(x)
	close(b.begun)
}

// watch draws the live table until the user has seen enough. What keeps candid
// from sampling is told before anything is drawn.
func watch(parent context.Context, o record.Options) error {
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	model := live.New()
	start := beginning{model, make(chan struct{})}
	o.Live = start
	// Signals are caught from here on: a terminal is always given back.
	stop := make(chan os.Signal, 4)
	signal.Notify(stop, stopSignals...)
	defer signal.Stop(stop)
	ended := make(chan error, 1)
	go func() { ended <- guarded(func() error { _, err := record.Run(ctx, o); return err }) }()
	select {
	case <-start.begun:
	case err := <-ended:
		return recordFailure(err)
	case <-stop:
		cancel()
		return recordFailure(<-ended)
	}
	program := screen.New(screen.Options{Model: model, Whole: o.All, State: threadState}).Program()
	last := make(chan error, 1)
	go func() {
		err := <-ended
		program.Send(screen.Ended{Err: err, Over: o.Duration > 0 && model.Table(live.Query{}).Elapsed >= o.Duration})
		last <- err
	}()
	signalled := make(chan struct{})
	go func() {
		<-stop
		close(signalled)
		program.Quit()
	}()
	_, err := program.Run()
	cancel()
	sampling := <-last
	select {
	case <-signalled:
		err = nil // the terminal may have gone first
	default:
	}
	if err != nil {
		return failed(fmt.Errorf("draw on the terminal: %w; 'candid top --once' prints one table instead", err))
	}
	return recordFailure(sampling)
}

// guarded makes a fault an error: a terminal that is drawn on has to be given
// back first.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("candid has a fault, please report it: %v", r)
		}
	}()
	return f()
}
