package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/format/html"
	"github.com/candid-profiler/candid/internal/gctune"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
	"github.com/candid-profiler/candid/internal/spill"
)

type diffFlags struct {
	unfold    bool
	filter    filterFlags
	view      string
	tree      bool
	callers   string
	top       int
	minimum   float64
	by        string
	normalize string
	failAbove float64
	json      bool
	out       outputFlags
	store     storeFlags
	against   againstFlags
}

func newDiff() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff BASE NEW | diff --store DIR",
		Short: "Say what got slower and what got faster",
		Long: `Compare two recordings: what of the time each method takes, before and after, with
what is new and what is gone. The largest change comes first.

BASE and NEW may be of different formats and of different length. By default each is
taken as a share of all that it shows, and changes are in percentage points: +5.00 is
from 10 % to 15 %. A share also grows when something else shrinks: to see whether a
method takes more time than before, use --normalize time (CPU time and the like by the
second of recording) for programs under the same load, or none for the same work.

A change marked with ~ is within chance: if both were recordings of one and the same
program, samples alone would make them differ that much more often than once in 370
times (Fisher's exact test of both shares, or the normal distribution where there are
many samples; samples of different weight count for as many as tell the same). So of a
thousand methods that did not change, some three are not marked. How much a program
itself differs from run to run, nobody can know from two recordings.

Names that a JVM makes anew in each run (lambdas, proxies, hidden classes) are
compared without their numbers. Stacks whose outer part is missing stand under a root
that says so. 'candid view --diff BASE NEW' shows the same in the browser, in every tab.

` + filterHelp + `
They are applied to both.

With -o the comparison is written, by the extension of the file:
  html       .html .htm           a flame graph of both in one file that any browser opens
  collapsed  .collapsed .folded   stack, base, new: for flamegraph.pl and inferno
  text       .txt                 what is printed otherwise
  json       .json                the same for scripts

Exit codes: 0 compared, 1 failed, or --fail-above found something, 2 wrong usage or
recordings that cannot be compared, 5 one of them has no samples, or none pass.

With --store DIR two ranges of time of what 'candid agent' stored are compared: NEW is the
service --service NAME from --from to --to, and BASE the same service at an earlier time:
--against yesterday, last-week or a length of time such as 2h (so much earlier), or
from --base-from to --base-to (default: as long as NEW, and just before it). Times are before
now (-1h, -7d), now, today or yesterday, or by the clock (14:03, 2026-03-01T14:03:20Z).

BASE and NEW are profiles in formats that candid reads:
` + format.HelpRead(),
		Example: `  candid diff before.jfr after.jfr
  candid diff before.jfr after.jfr --tree             where in the call tree
  candid diff before.jfr after.jfr --callers 'HashMap.get$'
  candid diff before.jfr after.jfr -o diff.html       a flame graph of both
  candid diff before.jfr after.jfr --thread '^http-' --from 30s
  candid diff monday.pb.gz friday.collapsed --top 10
  candid diff base.jfr new.jfr --fail-above 2         exit code 1 if a method's self share
                                                      grew by more than 2 points
  candid diff base.jfr new.jfr -o d.folded && flamegraph.pl d.folded > d.svg
  candid diff base.jfr new.jfr --json | jq '.methods[0]'
  candid diff --store /var/lib/candid --service shop --from -1h --against yesterday`,
		Args: func(_ *cobra.Command, args []string) error {
			if err := f.store.check(args); err != nil {
				return err
			}
			if f.store.dir != "" {
				return nil
			}
			if f.against != (againstFlags{}) {
				return usage("--against, --base-from and --base-to are of a store: give --store DIR too")
			}
			if len(args) != 2 {
				return usage("give two files, BASE and NEW, not %d", len(args))
			}
			if args[0] == "-" && args[1] == "-" {
				return usage("only one of BASE and NEW can be standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.store.dir != "" {
				return runDiff(cmd, &f, [2]string{})
			}
			return runDiff(cmd, &f, [2]string(args))
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.view, "view", "methods", "`NAME`: methods, tree, callers")
	fl.BoolVar(&f.tree, "tree", false, "the same as --view tree")
	fl.StringVar(&f.callers, "callers", "", "compare who calls the functions that match this `REGEX`")
	fl.StringVar(&f.by, "by", "self", "sort methods by the change of `WHAT`: self (own code) or total (with what it calls)")
	fl.IntVarP(&f.top, "top", "n", 0, "at most `N` rows (default 30, in trees all; -1: all)")
	fl.Float64Var(&f.minimum, "min", 0.5, "in trees: sum up branches in which nothing changed by this `PERCENT` of all")
	fl.BoolVar(&f.unfold, "unfold", false, "in trees: show each of the frames by which threads start")
	fl.StringVar(&f.normalize, "normalize", string(diff.Total), "compare by `WHAT`: total (shares), time (by the second of recording), none (as it is)")
	fl.Float64Var(&f.failAbove, "fail-above", 0, "exit with code 1 if the self share of a method grew by more than so many `POINTS`, and by more than chance explains")
	fl.BoolVar(&f.json, "json", false, "print everything as JSON")
	fl.StringVarP(&f.out.path, "output", "o", "", "`FILE` to write; '-' is standard output")
	fl.StringVar(&f.out.format, "format", "", "`NAME` of the format, if the extension does not say it")
	fl.BoolVar(&f.out.force, "force", false, "overwrite the file if it is there")
	f.store.add(cmd)
	f.against.add(cmd)
	f.filter.addReader(cmd, "the `NAME` of the event to compare (default the first that both have)")
	addMaxMemory(cmd)
	return cmd
}

// options checks the flags and converts them.
func (f *diffFlags) options(cmd *cobra.Command) (o report.DiffOptions, how diff.Normalize, err error) {
	if how, err = diff.ParseNormalize(f.normalize); err != nil {
		return o, how, usage("--normalize %v", err)
	}
	width, color := report.Terminal(os.Stdout)
	o = report.DiffOptions{Top: f.top, MinPercent: f.minimum, ByTotal: f.by == "total", Unfold: f.unfold, Width: width, Color: color}
	switch report.View(f.view) {
	case report.ViewMethods, report.ViewTree, report.ViewCallers:
		o.View = report.View(f.view)
	default:
		return o, how, usage("--view: no view is called %q: there are methods, tree, callers", f.view)
	}
	if f.tree {
		o.View = report.ViewTree
	}
	switch {
	case f.callers != "":
		if o.Callers, err = regexp.Compile(f.callers); err != nil {
			return o, how, usage("--callers: %v", err)
		}
		o.View = report.ViewCallers
	case o.View == report.ViewCallers:
		return o, how, usage("the callers of what? give --callers REGEX")
	}
	switch changed := cmd.Flags().Changed("fail-above"); {
	case f.by != "self" && f.by != "total":
		return o, how, usage("--by %q: there are self, total", f.by)
	case !(f.minimum >= 0 && f.minimum <= 100):
		return o, how, usage("--min %g is no percentage", f.minimum)
	case changed && !(f.failAbove >= 0 && f.failAbove <= 100):
		return o, how, usage("--fail-above %g are no percentage points", f.failAbove)
	case changed && how != diff.Total:
		return o, how, usage("--fail-above is of shares: it goes with --normalize total")
	case f.json && f.out.path != "":
		return o, how, usage("give --json or -o FILE, not both")
	case f.out.path == "" && (f.out.format != "" || f.out.force):
		return o, how, usage("--format and --force are of the file that -o FILE names; --json prints JSON")
	}
	return o, how, nil
}

func runDiff(cmd *cobra.Command, f *diffFlags, files [2]string) error {
	o, how, err := f.options(cmd)
	if err != nil {
		return err
	}
	var spec *filter.Spec
	if f.store.dir == "" {
		if spec, err = f.filter.spec(); err != nil {
			return err
		}
	}
	var out *output
	if f.out.path != "" {
		if out, err = f.out.open(); err != nil {
			return err
		}
		if diffWriters[out.name] == nil {
			return usage("a comparison cannot be written as %s: there are html, collapsed, text, json", out.name)
		}
	}
	defer gctune.Bound()()
	var sides [2]diff.Side
	if f.store.dir == "" {
		sides, err = f.read(files, spec)
	} else {
		sides, files, err = f.readStore(cmd)
	}
	if err != nil {
		return err
	}
	c, err := diff.Compare(sides[0], sides[1], how)
	if err != nil {
		return diffFailure(files, err)
	}
	name := "" // of the written file
	switch {
	case out != nil:
		for _, s := range c.Sides {
			if s.Passed < s.All {
				fmt.Fprintf(cmd.ErrOrStderr(), "candid: %s: %v\n", s.Name, filter.Passed{All: s.All, Left: s.Passed, Unknown: s.Unknown})
			}
		}
		o.Width, o.Color = 0, false
		name, err = out.put(func(w io.Writer) error { return diffWriters[out.name](w, c, o) })
	case f.json:
		err = report.DiffJSON(cmd.OutOrStdout(), c, o)
	default:
		err = report.DiffText(cmd.OutOrStdout(), c, o)
	}
	if err == nil && cmd.Flags().Changed("fail-above") {
		err = gate(c, f.failAbove/100)
	}
	if err == nil && out != nil {
		out.tell(cmd.ErrOrStderr(), name)
	}
	return failed(err)
}

// read reads both files, keeps only the sums of their samples, and selects what is compared.
func (f *diffFlags) read(files [2]string, spec *filter.Spec) (sides [2]diff.Side, err error) {
	keep := profile.KeepWeights
	if spec.Cuts() {
		keep = profile.KeepTracks
	}
	var profiles [2]*profile.Profile
	var over [2]spill.File
	for i, file := range files {
		defer over[i].Close()
		if profiles[i], _, err = (format.Reading{Keep: keep, Overflow: &over[i]}).Read(file); err != nil {
			return sides, failed(err)
		}
	}
	if sides, err = diff.Choose(files, profiles, spec); err != nil {
		return sides, diffFailure(files, err)
	}
	return sides, failed(errors.Join(profiles[0].Err(), profiles[1].Err()))
}

// diffWriters write a comparison, by the format names of package format.
var diffWriters = map[string]func(io.Writer, *diff.Comparison, report.DiffOptions) error{
	"html": func(w io.Writer, c *diff.Comparison, _ report.DiffOptions) error {
		return html.WriteDiff(w, c)
	},
	"collapsed": func(w io.Writer, c *diff.Comparison, _ report.DiffOptions) error {
		return c.Folded(w)
	},
	"text": report.DiffText,
	"json": report.DiffJSON,
}

// diffFailure returns an error of a comparison with its exit code.
func diffFailure(files [2]string, err error) error {
	if errors.Is(err, diff.ErrIncomparable) {
		return usage("compare %s and %s: %v", files[0], files[1], err)
	}
	return filterFailure("", err)
}

// gate returns an error if the self share of a method grew by more than a limit, and not by chance.
func gate(c *diff.Comparison, limit float64) error {
	var found []string
	more := 0
	for _, m := range c.List(false) {
		if by := c.Change(m.Self); by > limit && !c.WithinChance(m.Self) {
			if len(found) == 5 {
				more++
				continue
			}
			found = append(found, fmt.Sprintf("%s %+.2f", report.Clean(c.Funcs[m.Func].Name), 100*by))
		}
	}
	if found == nil {
		return nil
	}
	text := strings.Join(found, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return &codedError{exitFailed, fmt.Errorf("the self share grew by more than %g points: %s", 100*limit, text)}
}
