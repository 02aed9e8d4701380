package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/gctune"
	"github.com/candid-profiler/candid/internal/pgo"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
	"github.com/candid-profiler/candid/internal/spill"
)

func newAnnotate() *cobra.Command {
	var f pgoFlags
	cmd := &cobra.Command{
		Use:   "annotate FILE FUNCTION",
		Short: "Show a function's source and instructions with their samples",
		Long: `Show a function of a compiled program: each source line with the instructions that were
made of it, inlined ones with the function they are from.

For each instruction: its share of the function's samples; how often its block runs,
compared to the function's most frequent one (a block's samples divided by its
instructions: 1.00 is the hottest, nothing means that no sample was there); where a
branch goes (up: a loop), '>' where one arrives; and what a call calls, with the shares
of the stacks that go there.

FUNCTION is a name with or without parameters, as in reports or as in the symbol table;
if no function is called that, all with samples whose name contains it are shown.
Instructions are read from the program's own file, which has to be the one that was
recorded (see 'candid help pgo'); source lines are shown if their file is there.`,
		Example: `  candid annotate app.jfr parse_number
  candid annotate app.jfr 'Parser::next' --binary build/app
  candid annotate app.jfr main.(*Parser).Next`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("give a recording and a function: candid annotate FILE FUNCTION")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runAnnotate(cmd, &f, args[0], args[1]) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.binary, "binary", "b", "", "the program's or library's own `FILE` (default: the one with the most samples, where it was)")
	fl.StringVar(&f.event, "event", "", "the `NAME` of the event to use (default the first that has samples)")
	fl.BoolVar(&f.anyFile, "ignore-build-id", false, "use the file even if it is not the one that was recorded")
	return cmd
}

func runAnnotate(cmd *cobra.Command, f *pgoFlags, file, function string) error {
	defer gctune.Bound()()
	var over spill.File
	defer over.Close()
	p, _, err := (format.Reading{Keep: profile.KeepSums, Overflow: &over}).Read(file)
	if err != nil {
		return failed(err)
	}
	if len(p.Events) == 0 {
		return &codedError{exitNoSamples, fmt.Errorf("%s has no samples", file)}
	}
	event := p.FirstEvent()
	if f.event != "" {
		var ok bool
		if event, ok = p.EventByName(f.event); !ok {
			return usage("--event %q: %s has %s", f.event, file, p.EventNames())
		}
	}
	samples := pgo.NewSamples()
	samples.Add(p, event, 1)
	if err := p.Err(); err != nil {
		return failed(err)
	}
	if f.binary == "" {
		f.binary = samples.FileOf(function)
	}
	m, b, err := f.program(samples, "annotate", func(format string, args ...any) {
		fmt.Fprintf(cmd.ErrOrStderr(), "candid: "+format+"\n", args...)
	})
	if err != nil {
		return failed(err)
	}
	if m == nil || b == nil {
		return &codedError{exitNoSamples, fmt.Errorf("no sample of %s is in machine code of a file", file)}
	}
	defer b.Close()
	if b.Machine == pgo.Other {
		return failed(fmt.Errorf("%s is for a processor whose instructions candid does not read: only x86-64 and arm64", b.Path))
	}
	list := pgo.Annotate(b, m, function, samples.Total)
	if len(list) == 0 {
		return &codedError{exitNoSamples, fmt.Errorf("%s has no function called %q, and none with samples whose name contains that", b.Path, function)}
	}
	_, color := report.Terminal(os.Stdout)
	return failed(pgo.WriteAnnotated(cmd.OutOrStdout(), list, color))
}
