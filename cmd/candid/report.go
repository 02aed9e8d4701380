package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/gctune"
	"github.com/candid-profiler/candid/internal/report"
	"github.com/candid-profiler/candid/internal/spill"
)

func newReport() *cobra.Command {
	var (
		filter  filterFlags
		view    string
		callers string
		top     int
		json    bool
		threads bool
		lines   bool
		sigs    bool
		minimum float64
		unfold  bool
		by      string
		raw     bool
		from    storeFlags
	)
	cmd := &cobra.Command{
		Use:   "report FILE | report --store DIR",
		Short: "Say where the time went, as text",
		Long: `Say where the time went: which methods, called from where, in which threads.
Self is the time in a method's own code, total includes what it called.

In trees the frames by which threads start (_start, clone3, JavaCalls::call_helper
and the like) are one line; --unfold shows each of them.

` + filterHelp + `

` + storeHelp + ` Without a service, the services are listed first.

FILE is a profile in a format that candid reads, '-' is standard input:
` + format.HelpRead() + `

It may also be a stack that 'candid record --save-broken' saved. That is walked again by
this candid: the exit code is 0 if its frames are the same as when it was saved, 1 if not.`,
		Example: `  candid report app.jfr                        the hottest methods
  candid report app.jfr --by total             those below which most of the time is
  candid report app.jfr --view tree            from the first frame down
  candid report app.jfr --callers 'HashMap.get$'
  candid report app.jfr --lines --top 10       the hottest source lines
  candid report app.jfr --view threads
  candid report wall.jfr --view states         what threads were doing
  candid report wall.jfr --state sleeping      where they slept
  candid report heap.pb.gz --event alloc_space another value of a Go heap profile
  candid report cpu.pb.gz --view labels        what the samples' labels are, and the share of each
  candid report cpu.pb.gz --label tenant=acme  only what is labelled so
  candid report app.jfr --event page-faults    another event of the recording
  candid report app.jfr --from 30s --to -5s    without the first 30 s and the last 5 s
  candid report app.jfr --from 14:03 --to 14:05:30
  candid report app.jfr --focus 'Checkout' --ignore 'Logger'
  candid report app.jfr --json | jq '.methods[0]'
  candid report --store /var/lib/candid --from -1h               which services, which methods
  candid report --store /var/lib/candid --service shop --from yesterday --to today`,
		Args: from.oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && from.dir == "" {
				if f := openSnapshots(args[0]); f != nil {
					defer f.Close()
					return reportSnapshots(cmd, args[0], f)
				}
			}
			v, err := report.ParseView(view)
			if err != nil {
				return usage("--view: %v", err)
			}
			if by != "self" && by != "total" {
				return usage("--by %q: methods are sorted by self or total", by)
			}
			if cmd.Flags().Changed("by") && (v != report.ViewMethods || callers != "") {
				return usage("--by sorts the methods of --view methods: there are none in this view")
			}
			if !(minimum >= 0 && minimum <= 100) {
				return usage("--min %g is no percentage", minimum)
			}
			o := reportOptions(os.Stdout)
			o.View, o.Top, o.MinPercent, o.ByThread, o.Unfold, o.ByTotal = v, top, minimum, threads, unfold, by == "total"
			if callers != "" {
				if o.Callers, err = regexp.Compile(callers); err != nil {
					return usage("--callers: %v", err)
				}
				o.View = report.ViewCallers
			} else if v == report.ViewCallers {
				return usage("the callers of what? give --callers REGEX")
			}
			defer gctune.Bound()()
			var over spill.File
			defer over.Close()
			p, name, spec, err := from.whole(cmd, &filter, args, &over, &o)
			if err != nil {
				return err
			}
			if o.Filter, err = spec.Choose(p); err != nil {
				return filterFailure(name, err)
			}
			o.Filter.Lines, o.Filter.Signatures, o.Filter.Raw = lines, sigs, raw
			write := report.Text
			if json {
				write = report.JSON
			}
			if err := errors.Join(write(cmd.OutOrStdout(), p, o), p.Err()); err != nil {
				return failed(err)
			}
			if p.SampleCount() == 0 {
				return &codedError{exitNoSamples, fmt.Errorf("%s: no samples", name)}
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&view, "view", "methods", "`NAME`: "+strings.Join(report.ViewNames(), ", "))
	fl.StringVar(&callers, "callers", "", "print who calls the functions that match this `REGEX`")
	fl.StringVar(&by, "by", "self", "sort methods by `WHAT`: self (own code) or total (with what it calls)")
	fl.IntVarP(&top, "top", "n", 0, "at most `N` rows (default 30, in trees all; -1: all)")
	fl.Float64Var(&minimum, "min", 0.5, "in trees: sum up branches below this `PERCENT`")
	fl.BoolVar(&unfold, "unfold", false, "in trees: show each of the frames by which threads start")
	fl.BoolVarP(&threads, "threads", "t", false, "show each thread by itself")
	fl.BoolVar(&lines, "lines", false, "keep the source lines of a method apart: METHOD:LINE")
	fl.BoolVar(&sigs, "signatures", false, "keep methods apart that differ only in their parameters")
	fl.BoolVar(&raw, "raw", false, rawHelp)
	fl.BoolVar(&json, "json", false, "print everything as JSON")
	from.add(cmd)
	filter.addReader(cmd, "the `NAME` of the event to show (default the first that has samples)")
	addMaxMemory(cmd)
	return cmd
}

// rawHelp explains --raw, which means the same in every command.
const rawHelp = "show samples that came late where the kernel delivered them, as it enabled interrupts again, instead of counting them for the caller"

func newConvert() *cobra.Command {
	var (
		filter filterFlags
		out    outputFlags
		raw    bool
		from   storeFlags
	)
	cmd := &cobra.Command{
		Use:   "convert IN -o OUT | convert --store DIR -o OUT",
		Short: "Turn a profile into another format",
		Long: `Turn a profile into another format, or take a part of it.

A JFR file may be larger than memory: what it takes there is as much as it has different
stacks. Formats with single samples need some ten bytes for each on disk while they are
written, where TMPDIR says, else in /var/tmp or /tmp.

` + filterHelp + `

` + storeHelp + `

Reads:
` + format.HelpRead() + `
Writes:
` + format.Help(),
		Example: `  candid convert app.jfr -o flame.html
  candid convert app.jfr --from 10s --to 20s -o part.pb.gz
  candid convert app.jfr --thread '^http-' --state running -o http.jfr
  candid convert app.jfr -o - --format collapsed | flamegraph.pl > flame.svg
  candid convert perf.data -o flame.html
  perf script | candid convert - -o flame.html
  candid convert --store /var/lib/candid --service shop --from -1h -o shop.pb.gz`,
		Args: from.oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := out.open()
			if err != nil {
				return err
			}
			defer gctune.Bound()()
			var over spill.File
			defer over.Close()
			p, err := from.part(cmd, &filter, args, format.Keeps(o.name), &over)
			if err != nil {
				return err
			}
			if raw {
				p.ShowSkid()
			}
			name, err := o.write(p)
			if err != nil {
				return failed(err)
			}
			if len(p.Events) > 1 && format.OneEvent(o.name) {
				fmt.Fprintf(cmd.ErrOrStderr(), "candid: %s holds one event: %s; choose with --event\n", o.name, p.Events[p.FirstEvent()].Name)
			}
			o.tell(cmd.ErrOrStderr(), name)
			return nil
		},
	}
	cmd.Flags().SortFlags = false
	out.add(cmd)
	cmd.Flags().BoolVar(&raw, "raw", false, rawHelp)
	from.add(cmd)
	filter.addReader(cmd, "the `NAME` of the only event to keep")
	addMaxMemory(cmd)
	return cmd
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		if len(args) == 2 && cmd.Name() == "convert" {
			return usage("give one file to read; the file to write goes after -o: candid convert %s -o %s", args[0], args[1])
		}
		if len(args) == 0 {
			return usage("give one file: candid %s FILE", cmd.Name())
		}
		return usage("give one file, not %d", len(args))
	}
	return nil
}
