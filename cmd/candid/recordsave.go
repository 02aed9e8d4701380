package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/capture/launch"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/report"
	"github.com/spf13/cobra"
)

// save writes what was recorded and prints a summary of it.
func (f *recordFlags) save(cmd *cobra.Command, out *output, stream *streaming, res *record.Result, launching bool) error {
	write := out.write
	if stream != nil {
		write = stream.finish
	}
	name, err := write(res.Profile)
	if err == nil && stream != nil && res.Profile.SampleCount() < res.Passed.All {
		err = stream.replace(res.Profile)
	}
	if err != nil {
		return err
	}
	costs := report.Costs{
		Stats: res.Costs.Stats, Target: res.Costs.Target, TargetCPU: res.Costs.TargetCPU,
		OwnCPU: res.Costs.OwnCPU, FirstWalked: res.Costs.FirstWalked, File: name,
		MaxRSS: max(res.Costs.MaxRSS, record.PeakMemory()), // writing may have taken more memory
		Ended:  ended(res),
	}
	if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() {
		costs.FileSize = st.Size()
	}
	// candid's text is mixed neither with the output of a launched program nor with a profile on
	// standard output.
	printTo := os.Stdout
	if launching || f.out.path == "-" {
		printTo = os.Stderr
	}
	if f.json {
		enc := json.NewEncoder(printTo)
		enc.SetIndent("", "  ")
		return enc.Encode(report.SummaryJSON(res.Profile, costs))
	}
	if f.quiet {
		return nil
	}
	if launching && res.Filtered == nil && res.Profile.SampleCount() == 0 {
		out.tell(cmd.ErrOrStderr(), name)
		return nil // the reason for having none is printed when it has ended
	}
	if n := res.Passed; n.Left < n.All {
		fmt.Fprintf(cmd.ErrOrStderr(), "candid: %v\n", n)
	}
	if f.report {
		o := reportOptions(printTo)
		o.Filter.Event = res.Profile.FirstEvent()
		if err := report.Text(printTo, res.Profile, o); err != nil {
			return err
		}
		fmt.Fprintln(printTo)
	}
	o := reportOptions(os.Stderr)
	o.NoMethods = f.report
	o.Filter.Event = res.Profile.FirstEvent()
	return report.Summary(cmd.ErrOrStderr(), res.Profile, costs, o)
}

// reportOptions fits a report to where it is printed.
func reportOptions(f *os.File) report.Options {
	width, color := report.Terminal(f)
	return report.Options{Width: width, Color: color}
}

// recordFailure returns an error of recording with its exit code.
func recordFailure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, record.ErrUsage):
		return &codedError{exitUsage, errors.New(strings.TrimPrefix(err.Error(), record.ErrUsage.Error()+": "))}
	case errors.Is(err, launch.ErrNotFound):
		return &codedError{exitNotFound, err}
	case errors.Is(err, launch.ErrNotExecutable):
		return &codedError{exitNotExecutable, err}
	}
	return failed(err)
}

// launchFailure maps candid's own failures to one code that a launched program is unlikely to have.
func launchFailure(launching bool, err error) error {
	var coded *codedError
	if launching && errors.As(err, &coded) && coded.code < exitCandidFailed && coded.code != exitUsage {
		return &codedError{exitCandidFailed, err}
	}
	return err
}

func defaultName(pids []int, all bool, now time.Time) string {
	who := strconv.Itoa(os.Getpid())
	switch {
	case all:
		who = "all"
	case len(pids) > 0:
		who = strconv.Itoa(pids[0])
	}
	return fmt.Sprintf("candid-%s-%s.jfr", who, now.Format("20060102-150405"))
}

// early returns an error if the targets did not end as requested. Its text has been printed
// already, unless only errors are.
func (f *recordFlags) early(res *record.Result) error {
	var why error
	for _, e := range res.Ends {
		if e.Outcome.Killed() {
			why = fmt.Errorf("process %d %v; what was recorded until then is saved", e.PID, e.Outcome)
			break
		}
	}
	if why == nil && res.Early {
		why = fmt.Errorf("the targets ended before %v had passed; what was recorded until then is saved", f.duration)
	}
	if why == nil {
		return nil
	}
	if !f.quiet {
		why = nil
	}
	return &codedError{exitEarly, why}
}

// ended describes for scripts how targets ended.
func ended(res *record.Result) []report.Ended {
	var out []report.Ended
	for _, e := range res.Ends {
		o := report.Ended{PID: e.PID, After: int64(e.After), Signal: e.Outcome.SignalName()}
		if e.Outcome.Known && o.Signal == "" {
			o.Code = &e.Outcome.Code
		}
		out = append(out, o)
	}
	return out
}
