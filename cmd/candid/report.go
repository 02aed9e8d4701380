package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
)

// filterFlags choose a part of a profile, the same way in every reader.
type filterFlags struct {
	thread   string
	kinds    []string
	focus    string
	ignore   string
	from, to time.Duration
	event    string
	states   []string
}

func (f *filterFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.thread, "thread", "", "keep only threads whose name matches this `REGEX`")
	fl.StringVarP(&f.event, "event", "e", "", "the `NAME` of the event to show (default the first of the recording)")
	fl.StringSliceVar(&f.states, "state", nil, "keep only threads in this `STATE`, such as sleeping; waits is any wait")
	fl.StringSliceVar(&f.kinds, "thread-kind", nil, threadKindHelp)
	fl.StringVar(&f.focus, "focus", "", "keep only stacks with a function that matches this `REGEX`")
	fl.StringVar(&f.ignore, "ignore", "", "leave out stacks with a function that matches this `REGEX`")
	fl.DurationVar(&f.from, "from", 0, "leave out what came before this `TIME` into the recording")
	fl.DurationVar(&f.to, "to", 0, "leave out what came after this `TIME` into the recording")
}

func (f *filterFlags) filter() (profile.Filter, error) {
	var out profile.Filter
	for _, r := range []struct {
		flag, text string
		to         **regexp.Regexp
	}{{"--thread", f.thread, &out.Thread}, {"--focus", f.focus, &out.Focus}, {"--ignore", f.ignore, &out.Ignore}} {
		if r.text == "" {
			continue
		}
		re, err := regexp.Compile(r.text)
		if err != nil {
			return out, usage("%s: %v", r.flag, err)
		}
		*r.to = re
	}
	if err := checkThreadKinds(f.kinds); err != nil {
		return out, err
	}
	out.ThreadKinds = f.kinds
	if f.from < 0 || f.to < 0 || (f.to > 0 && f.to <= f.from) {
		return out, usage("--from %v --to %v is no stretch of time", f.from, f.to)
	}
	out.From, out.To = f.from, f.to
	for _, name := range f.states {
		if name == "waits" {
			for s := profile.StateSleeping; int(s) < profile.NumStates; s++ {
				out.States = out.States.With(s)
			}
			continue
		}
		s, ok := profile.StateByName(name)
		if !ok {
			return out, usage("--state %q: there are %s, waits", name, strings.Join(profile.StateNames(), ", "))
		}
		out.States = out.States.With(s)
	}
	return out, nil
}

var threadKindHelp = "keep only threads of this `KIND`: " + strings.Join(profile.ThreadKinds(), ", ")

// checkThreadKinds says which of --thread-kind there is not.
func checkThreadKinds(kinds []string) error {
	for _, k := range kinds {
		if !slices.Contains(profile.ThreadKinds(), k) {
			return usage("--thread-kind: no kind of thread is called %q: there are %s", k, strings.Join(profile.ThreadKinds(), ", "))
		}
	}
	return nil
}

// choose finds the event that was asked for in a profile; the first if none was.
func (f *filterFlags) choose(p *profile.Profile, out *profile.Filter) error {
	if f.event == "" {
		return nil
	}
	i, ok := p.EventByName(f.event)
	if !ok {
		var names []string
		for _, e := range p.Events {
			names = append(names, e.Name)
		}
		return usage("--event %q: the recording has %s", f.event, strings.Join(names, ", "))
	}
	out.Event = i
	return nil
}

func newReport() *cobra.Command {
	var (
		filter  filterFlags
		view    string
		callers string
		top     int
		json    bool
		threads bool
		minimum float64
	)
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Say where the time went, as text",
		Long: `Say where the time went: which methods, called from where, in which threads.
Self is the time in a method's own code, total includes what it called.

FILE is a profile in a format that candid reads:
` + format.HelpRead(),
		Example: `  candid report app.jfr                        the hottest methods
  candid report app.jfr --view tree            from the first frame down
  candid report app.jfr --callers 'HashMap.get$'
  candid report app.jfr --view threads
  candid report wall.jfr --view states         what threads were doing
  candid report wall.jfr --state sleeping      where they slept
  candid report app.jfr --event page-faults    another event of the recording
  candid report app.jfr --json | jq '.methods[0]'`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := report.ParseView(view)
			if err != nil {
				return usage("--view: %v", err)
			}
			if minimum < 0 || minimum > 100 {
				return usage("--min %g is no percentage", minimum)
			}
			o := reportOptions(os.Stdout)
			o.View, o.Top, o.MinPercent, o.ByThread = v, top, minimum, threads
			if callers != "" {
				if o.Callers, err = regexp.Compile(callers); err != nil {
					return usage("--callers: %v", err)
				}
				o.View = report.ViewCallers
			} else if v == report.ViewCallers {
				return usage("the callers of what? give --callers REGEX")
			}
			flt, err := filter.filter()
			if err != nil {
				return err
			}
			p, err := format.Read(args[0])
			if err != nil {
				return failed(err)
			}
			if err := filter.choose(p, &flt); err != nil {
				return err
			}
			o.Filter = flt
			if json {
				return failed(report.JSON(cmd.OutOrStdout(), p, o))
			}
			return failed(report.Text(cmd.OutOrStdout(), p, o))
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&view, "view", "methods", "`NAME`: "+strings.Join(report.ViewNames(), ", "))
	fl.StringVar(&callers, "callers", "", "print who calls the functions that match this `REGEX`")
	fl.IntVarP(&top, "top", "n", 0, "at most `N` rows (default 30; -1: all)")
	fl.Float64Var(&minimum, "min", 0.5, "in trees: sum up branches below this `PERCENT`")
	fl.BoolVarP(&threads, "threads", "t", false, "show each thread by itself")
	fl.BoolVar(&json, "json", false, "print everything as JSON")
	filter.add(cmd)
	return cmd
}

func newConvert() *cobra.Command {
	var (
		filter filterFlags
		out    outputFlags
	)
	cmd := &cobra.Command{
		Use:   "convert IN -o OUT",
		Short: "Turn a profile into another format",
		Long: `Turn a profile into another format.

Reads:
` + format.HelpRead() + `
Writes:
` + format.Help(),
		Example: `  candid convert app.jfr -o flame.html
  candid convert app.jfr --from 10s --to 20s -o part.pb.gz
  candid convert app.jfr -o - --format collapsed | flamegraph.pl > flame.svg`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			flt, err := filter.filter()
			if err != nil {
				return err
			}
			o, err := out.open()
			if err != nil {
				return err
			}
			p, err := format.Read(args[0])
			if err != nil {
				return failed(err)
			}
			if err := filter.choose(p, &flt); err != nil {
				return err
			}
			p = profile.Apply(p, flt)
			if filter.event != "" {
				p = profile.Only(p, flt.Event)
			}
			_, err = o.write(p)
			if err == nil && len(p.Events) > 1 && format.OneEvent(o.name) {
				fmt.Fprintf(cmd.ErrOrStderr(), "candid: %s holds one event: %s; choose with --event\n", o.name, p.Events[0].Name)
			}
			return failed(err)
		},
	}
	cmd.Flags().SortFlags = false
	out.add(cmd)
	filter.add(cmd)
	return cmd
}

func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("give one file, not %d", len(args))
	}
	return nil
}
