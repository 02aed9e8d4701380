package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
)

// filterFlags select a part of a recording, in the same way in every command.
type filterFlags struct{ words filter.Words }

// add adds the flags of every command that shows or writes a recording.
func (f *filterFlags) add(cmd *cobra.Command) {
	fl, w := cmd.Flags(), &f.words
	fl.StringVar(&w.Process, "process", "", "keep only processes with this `PID`, or whose command matches this REGEX")
	fl.StringVar(&w.Thread, "thread", "", "keep only threads whose name matches this `REGEX`")
	fl.StringSliceVar(&w.ThreadKinds, "thread-kind", nil, "keep only threads of this `KIND`: "+strings.Join(filter.ThreadKinds(), ", ")+"; java and dotnet also keep those of unknown kind where the process runs Java or .NET")
	fl.StringSliceVar(&w.States, "state", nil, "keep only threads in this `STATE`: "+strings.Join(profile.StateNames(), ", ")+"; "+filter.Waits+" is any wait")
	fl.StringVar(&w.Focus, "focus", "", "keep only stacks with a function that matches this `REGEX`")
	fl.StringVar(&w.Ignore, "ignore", "", "leave out stacks with a function that matches this `REGEX`")
	fl.StringVar(&w.From, "from", "", "leave out what came before this `TIME`, also of waits that went on: since the beginning (90s, 1m30s, or seconds), before the end (-10s), or by the clock (14:03:20)")
	fl.StringVar(&w.To, "to", "", "leave out what came at this `TIME` or later, written as for --from")
}

// addReader adds them and --event, which selects one of the events of an existing recording.
func (f *filterFlags) addReader(cmd *cobra.Command, event string) {
	cmd.Flags().StringVarP(&f.words.Event, "event", "e", "", event)
	cmd.Flags().StringArrayVar(&f.words.Labels, "label", nil, "keep only samples with this label: `KEY=REGEX`, or KEY for any value; a number is matched as the file has it, with its unit: '^1024 bytes$'")
	f.add(cmd)
}

// filterHelp explains in a command's help how the flags work together.
const filterHelp = `Filters (--process, --thread, --thread-kind, --state, --label, --focus, --ignore, --from,
--to) mean the same in record (which has no --label), report, convert, view and diff: a
sample is left if it passes all of them, and what part that is of all is printed. Of a
wait the part is left that lies between --from and --to; what convert cuts out begins
with --from. Expressions (RE2) match anywhere in a name: '^main$' is just main. If
nothing is left, the exit code is 5.`

// spec parses the flags.
func (f *filterFlags) spec() (*filter.Spec, error) {
	s, err := filter.Parse(f.words)
	return s, filterFailure("", err)
}

// read reads a file and leaves out what the filter excludes, as far as possible while reading; then
// the rest of the filter is applied, and what is left is reported to w. keep says what is kept of
// the samples; over, if it is not nil, takes what does not fit in memory.
func (f *filterFlags) read(w io.Writer, s *filter.Spec, path string, keep profile.Keep, over profile.Overflow) (*profile.Profile, error) {
	reads := keep
	if keep == profile.KeepSums && !s.Summable() {
		reads = profile.KeepTracks
	}
	p, left, err := format.Reading{Filter: s.Certain(), Keep: reads, Overflow: over}.Read(path)
	if err != nil {
		return nil, failed(err)
	}
	return f.apply(w, s, path, p, left, keep)
}

// apply leaves out of what was read of a file what the filter excludes. left is how many samples
// were left out while reading.
func (f *filterFlags) apply(w io.Writer, s *filter.Spec, path string, p *profile.Profile, left uint64, keep profile.Keep) (*profile.Profile, error) {
	out, n, err := s.Apply(p, left)
	if err != nil {
		return nil, filterFailure(path, err)
	}
	if s.Filters() {
		fmt.Fprintf(w, "candid: %s: %v\n", path, n)
	}
	if keep == profile.KeepSums {
		out = profile.Summed(out)
	}
	return out, nil
}

// filterFailure returns an error of a filter with its exit code.
func filterFailure(path string, err error) error {
	if err == nil {
		return nil
	}
	code := exitFailed
	switch {
	case errors.Is(err, filter.ErrUsage):
		code = exitUsage
	case errors.Is(err, filter.ErrEmpty):
		code = exitNoSamples
	}
	if path != "" {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return &codedError{code, err}
}
