package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/engines"
	"github.com/candid-profiler/candid/internal/capture/event"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/report"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/view"
)

type recordFlags struct {
	pids       []string
	all        bool
	children   bool
	duration   time.Duration
	freq       float64
	interval   time.Duration
	events     []string
	minSleep   time.Duration
	out        outputFlags
	filter     filterFlags
	engine     string
	noJVMFlags bool
	inlines    bool // --dotnet-inlines
	branches   bool // --branches
	saveBroken string
	nice       bool // --nice
	json       bool
	quiet      bool
	view       bool // show it in a browser afterwards
	report     bool // print a report: no file was named
}

func newRecord() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record [-p PID | -a | [--] COMMAND ARG...]",
		Short: "Take a profile",
		Long: `Take a profile of running processes, of the whole machine, or of a program
that candid launches.

The targets are not stopped, changed or prepared. Without -d recording goes on
until the targets end or Ctrl-C is pressed; what was recorded is saved then. A
second Ctrl-C ends candid at once. A target may become another program (exec):
that is recorded on. The exit code is 6 if all targets given with -p ended before -d
had passed, or one of them was killed by a signal; a line says how each ended.

` + privilegesHint + `

Events, which say what to sample by (-e, several with commas):
` + event.Help + `
A probe is a breakpoint that the kernel puts into the target's own copy of the code,
and takes out when candid ends, however it ends. No other event touches the target's code.

The format of the file is its extension:
` + format.Help() + `

Without -o the profile goes to candid-PID-TIME.jfr and a report is printed.
With '-o -' it goes to standard output.

A .jfr file, also .jfr.gz or .jfr.zst, is written while it is recorded, at least every
second: if candid is killed or the disk is full, the file holds what was recorded until
then, and reports say so. All other formats are written at the end.

` + filterHelp + `
They choose what is reported and what is in the file when recording ends; while it is
recorded, the file has all.

The flags of candid end where the command begins: what comes after its name is the
command's own. A number there is a process id, as after -p.

With --branches, candid executes in itself what each sample of native x86-64 code would do
next, from the copies of registers and stack: which branches it takes, for 'candid pgo'.
Nothing but some more memory is copied from the program.

With --save-broken, stacks that are heuristic, truncated or broken are saved one by one in
files of an existing directory, one of each kind, for a report to candid's developers:
'candid report FILE' walks one again. A file has the registers of the thread, the bytes of
its stack, and the memory and files of the process that walking it read: there may be
passwords, keys and data of the program's users among them. Only you may read it.

A java command that candid launches gets -XX:+DebugNonSafepoints put into its
arguments, which makes the place of a sample inside inlined methods exact. With
--dotnet-inlines a program gets DOTNET_RichDebugInfo=1 into its environment: .NET then
records which methods it inlines, which takes some memory of the program's.`,
		Example: `  candid record -p 1234 -d 30s                   profile for 30 s, print a report
  candid record --view -- java -jar app.jar      look at it in the browser while it runs
  candid record -p 1234 -d 30s -o flame.html     a flame graph in one file
  candid record -F 999 -o app.jfr -- java -jar app.jar
  candid record -a -d 10s -o machine.html        everything that runs here
  candid record -o app.jfr --from 30s -- java -jar app.jar    without the warm-up
  candid record -p 1234 -d 10s -o - --format collapsed | flamegraph.pl > f.svg`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRecord(cmd, &f, args)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringSliceVarP(&f.pids, "pid", "p", nil, "`PID` of a process to profile; may be repeated")
	fl.BoolVarP(&f.all, "all", "a", false, "profile the whole machine")
	fl.BoolVar(&f.children, "children", false, "also profile the processes that the targets start")
	secondsVar(fl, &f.duration, "duration", "d", "how long: a `TIME` such as 30s or 5m, or seconds (default until the targets end)")
	hertzVar(fl, &f.freq)
	fl.VarP(span{&f.interval}, "interval", "i", "CPU `TIME` between samples, such as 10ms; instead of -F")
	f.minSleep = capture.DefaultMinSleep
	fl.Var(span{&f.minSleep}, "min-sleep", "of off-cpu: sleeps of this `TIME` or more are samples")
	fl.StringSliceVarP(&f.events, "event", "e", []string{"cpu"}, "`NAME` of what to sample by, several with commas; see above")
	f.out.add(cmd)
	f.filter.add(cmd)
	fl.StringVar(&f.engine, "engine", "auto", "`HOW` to sample: "+strings.Join(append([]string{"auto"}, engines.Names()...), ", "))
	fl.BoolVar(&f.nice, "nice", false, "take a better nice level than the targets while many threads want each CPU")
	fl.BoolVar(&f.branches, "branches", false, "find branches by emulation, for 'candid pgo'; kept in .jfr files")
	fl.StringVar(&f.saveBroken, "save-broken", "", fmt.Sprintf("save stacks that are not complete in `DIR`, %d at most; see above", record.DefaultBroken))
	fl.BoolVar(&f.noJVMFlags, "no-jvm-flags", false, "launch java with just the arguments given")
	fl.BoolVar(&f.inlines, "dotnet-inlines", false, "launch a .NET program so that it records what it inlines: inlined methods are exact")
	fl.BoolVar(&f.json, "json", false, "print the summary as JSON")
	fl.BoolVar(&f.view, "view", false, "show it in a browser, as 'candid view' does: a .jfr while it is recorded, others afterwards")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print errors only")
	perfFlags(fl)
	takesCommand(cmd)
	return cmd
}

func runRecord(cmd *cobra.Command, f *recordFlags, args []string) error {
	pids, args, err := targets(cmd, &f.pids, args)
	if err != nil {
		return err
	}
	if err := onlyOneWay(f.all, pids, args); err != nil {
		return err
	}
	launching := len(args) > 0
	wrap := func(err error) error {
		return launchFailure(launching, recordFailure(notLaunched(cmd, args, err)))
	}

	if err := enoughFiles("record"); err != nil {
		return wrap(err)
	}
	o := record.Options{
		PIDs: pids, All: f.all, Command: args, Children: f.children, NoJVMFlags: f.noJVMFlags, DotNetInlines: f.inlines, Nice: f.nice,
		Duration: f.duration, Hz: f.freq, Events: f.events, MinSleep: f.minSleep, Engine: f.engine, Branches: f.branches, Version: version(),
	}
	if err := rate(cmd, &o, f.interval); err != nil {
		return err
	}
	if cmd.Flags().Changed("duration") && f.duration <= 0 {
		return usage("duration %v is not above 0", f.duration)
	}
	if cmd.Flags().Changed("save-broken") && f.saveBroken == "" {
		return usage("--save-broken: give the directory for the stacks")
	}
	o.SaveBroken.Dir = f.saveBroken
	if o.Filter, err = f.filter.spec(); err != nil {
		return err
	}
	if f.inlines && !launching {
		return usage("--dotnet-inlines is for a program that candid launches: give -- COMMAND too, or start it with DOTNET_RichDebugInfo=1 yourself")
	}
	if err := o.Check(); err != nil {
		return wrap(err)
	}
	f.report = f.out.path == ""
	if f.report {
		f.out.path = defaultName(o.PIDs, f.all, time.Now())
	}
	out, err := f.out.open()
	if err != nil {
		return wrap(err)
	}

	if f.branches && out.name != "jfr" {
		return usage("--branches: a %s file cannot hold them; give -o FILE.jfr", out.name)
	}

	stderr := cmd.ErrOrStderr()
	say := func(line string) {
		if !f.quiet {
			fmt.Fprintln(stderr, "candid: "+profile.PlainText(line))
		}
	}
	heedPerf(cmd.Flags(), say)
	status := newStatus(f.quiet || launching)
	tell := func(line string) { status.clear(); say(line) }
	o.Log = tell
	o.Progress = status.update
	ctx, signals := interruptible(cmd.Context(), launching, func() {
		status.clear()
		say(stopping(out))
	})
	defer signals.stop()
	o.Launched = signals.passTo
	var stream *streaming
	var page *livePage
	if out.streams() {
		stream = newStreaming(out, tell)
		stream.whole = f.view || o.Filter.Filters()
		o.Beside = stream
		if f.view {
			if page, err = newLivePage(cmd, out.path, tell); err != nil {
				return wrap(failed(err))
			}
			defer page.close()
			stream.named = func() { page.follow(stream.path) }
		}
	}
	if len(f.events) > 1 && format.OneEvent(out.name) {
		say(out.name + " files hold one event: the first of " + strings.Join(f.events, ", ") + " that has samples; .jfr, .pb.gz and .html hold all")
	}
	// A browser that is started at the end would be confined too.
	confineTo(&o, f.view && !out.streams())
	res, runErr := record.Run(ctx, o)
	status.clear()
	if res == nil || res.Profile == nil {
		return wrap(runErr)
	}

	// From here on something has been recorded: it is saved whatever else fails.
	err = errors.Join(f.save(cmd, out, stream, res, launching), runErr)
	signals.done()
	var outcome error // of the launched program
	if launching {
		if res.Filtered != nil {
			say(res.Filtered.Error())
		}
		outcome = awaitProgram(res, wrap(err), say)
	}
	if err != nil {
		return cmp.Or(outcome, wrap(err))
	}
	if launching && res.Filtered == nil && res.Profile.SampleCount() == 0 {
		all := ctx.Err() == nil && (o.Duration == 0 || res.Profile.Meta.Duration < o.Duration)
		say(noneOf(res, &o, f.events[0], outcome, all))
	}
	if launching && !f.view {
		return outcome
	}
	if res.Filtered != nil {
		return wrap(filterFailure("", res.Filtered))
	}
	if res.Profile.SampleCount() == 0 {
		return &codedError{exitNoSamples, errors.New("no samples: " + whyNone(&res.Costs, &o, f.events[0]))}
	}
	if f.view {
		signals.stop() // Ctrl-C ends the page from here on
		show := f.show
		if page != nil {
			show = page.keep
		}
		shown := show(cmd, res)
		return cmp.Or(outcome, shown, f.early(res))
	}
	return f.early(res)
}

// rate sets the rate if it is given as a time between samples.
func rate(cmd *cobra.Command, o *record.Options, interval time.Duration) error {
	if !cmd.Flags().Changed("interval") {
		return nil
	}
	if cmd.Flags().Changed("freq") {
		return usage("give -F or -i, not both: they say the same thing")
	}
	if interval <= 0 {
		return usage("interval %v is not above 0", interval)
	}
	o.Hz = float64(time.Second) / float64(interval)
	return nil
}

// childrenHint mentions --children if the targets may only launch what the user is looking for:
// timeout, sudo, env, sh -c.
func childrenHint(o *record.Options) string {
	switch {
	case stoppedHint(o) != "":
		return stoppedHint(o)
	case o.Children || o.All:
		return ""
	case target.HaveChildren(o.PIDs):
		return "; it has started other processes, which --children records too"
	}
	return "; what it starts, as sh, timeout and sudo do, is recorded with --children"
}

// stoppedHint says which of the targets use no CPU because they are stopped, "" if none is.
func stoppedHint(o *record.Options) string {
	for _, pid := range o.PIDs {
		if target.Stopped(pid) {
			return fmt.Sprintf(": process %d is stopped by a signal (SIGSTOP, Ctrl-Z); 'kill -CONT %[1]d' lets it run on", pid)
		}
	}
	return ""
}

// whyNone returns why a recording of an event has no samples.
func whyNone(c *record.Costs, o *record.Options, written string) string {
	e, err := event.Parse(written)
	switch {
	case err != nil || e.Kind == capture.CPUTime:
	case stoppedHint(o) != "":
		return "nothing of " + e.Name + " happened in the target" + stoppedHint(o)
	case e.Kind == capture.Wall:
		return "the targets had no threads for long enough"
	case e.Kind == capture.OffCPU:
		return "no thread of the targets slept for long enough; see --min-sleep"
	case e.Kind == capture.Counter && e.Period == 0 && e.Type == capture.TypeSoftware:
		return fmt.Sprintf("%[1]s happened too seldom in the targets, or not at all; -e %[1]s/period=1/ counts each", e.Name)
	case e.Kind == capture.Counter && e.Period == 0:
		return fmt.Sprintf("%[1]s happened too seldom in the targets, beside what else happens on these CPUs, or not at all; -e %[1]s/period=1/ counts each", e.Name)
	case e.Period > 1:
		return fmt.Sprintf("%[1]s happened too seldom in the targets, where one in %[2]d on a CPU is taken, or not at all; -e %[1]s/period=1/ counts each", e.Name, e.Period)
	default:
		return e.Name + " did not happen in the targets while they were recorded"
	}
	if n := c.Stats.Throttled; n > 0 && c.TargetCPU == 0 {
		// A target that was killed may have used some, of which nobody knows any more.
		return fmt.Sprintf("no CPU time of the target is known, and %d periods went by in which it could not be sampled: too many threads want the CPUs", n) + childrenHint(o)
	} else if n > 0 {
		return fmt.Sprintf("the target used %v of CPU, but too many threads want the CPUs: %d periods went by in which it could not be sampled", c.TargetCPU.Round(time.Millisecond), n)
	}
	return "the target used no CPU while it was recorded" + childrenHint(o)
}

// soon is the duration below which a program counts as too short for samples.
const soon = time.Second

// noneOf returns how a launched program without samples ended; all says that it was recorded to its
// end.
func noneOf(res *record.Result, o *record.Options, written string, outcome error, all bool) string {
	code := 0
	var coded *codedError
	if errors.As(outcome, &coded) {
		code = coded.code
	}
	text := fmt.Sprintf("the program ended with exit code %d", code)
	took := res.Profile.Meta.Duration
	if all {
		text += " after " + report.Amount(uint64(took), "nanoseconds")
		if took < soon {
			return text + ": no samples, it was too short for any (-F takes more of them)"
		}
	}
	return text + "; no samples: " + whyNone(&res.Costs, o, written)
}

// show serves the page of what was recorded. It knows when each sample was taken even if the format
// of the file does not keep that.
func (f *recordFlags) show(cmd *cobra.Command, res *record.Result) error {
	r, err := view.Open(f.out.path, res.Profile)
	if err != nil {
		return failed(err)
	}
	s, err := newServer(0, r)
	if err != nil {
		return failed(err)
	}
	return serve(cmd, s, true, "")
}

// stopping says that recording is ending, and what another Ctrl-C would do.
func stopping(out *output) string {
	if out.streams() {
		return "stopping; press Ctrl-C again to end at once, with what is written already"
	}
	return "stopping; press Ctrl-C again to give up what was recorded"
}

// awaitProgram waits for the launched program, whose exit code becomes candid's unless candid
// itself failed.
func awaitProgram(res *record.Result, failure error, say func(string)) error {
	if failure != nil {
		// The program may run for long: say now what went wrong.
		fmt.Fprintln(os.Stderr, "candid: "+oneLine(failure.Error()))
	}
	patience := time.AfterFunc(300*time.Millisecond, func() { say("the program goes on; waiting for it to end") })
	code, _, err := res.Wait()
	patience.Stop()
	switch {
	case failure != nil:
		return &codedError{exitCandidFailed, nil}
	case err != nil:
		return &codedError{exitCandidFailed, err}
	case code != 0:
		return &codedError{code, nil}
	}
	return nil
}
