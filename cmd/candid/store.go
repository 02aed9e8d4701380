package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
	"github.com/candid-profiler/candid/internal/spill"
	"github.com/candid-profiler/candid/internal/store"
)

// storeFlags select a part of a store, instead of a file.
type storeFlags struct {
	dir, only string // a service
}

func (f *storeFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.dir, "store", "", "read what 'candid agent' stored in this `DIR` instead of a file; see below for --from and --to")
	fl.StringVar(&f.only, "service", "", "with --store: only the service of this `NAME` (default all)")
}

// storeHelp explains --store.
const storeHelp = `With --store DIR instead of a file, what 'candid agent' stored is read: of the service
--service NAME, or of all, from --from until before --to. These are then before now (-1h,
-30m, -7d), now, today or yesterday (midnight), or by the clock (14:03, 2026-03-01,
2026-03-01T14:03:20Z), and without them all that is stored is read. Times in a store are
exact to the second.`

// check refuses combinations of flags and files that mean nothing.
func (f *storeFlags) check(files []string) error {
	switch {
	case f.dir == "" && f.only != "":
		return usage("--service is of a store: give --store DIR too; in a file --process chooses processes")
	case f.dir != "" && len(files) > 0:
		return usage("give --store DIR or %s, not both", files[0])
	}
	return nil
}

// stored is a part of a store that is asked for.
type stored struct {
	from, to time.Time
	service  string
}

// name says for people what part of the store it is.
func (f *storeFlags) name(s stored) string {
	who := f.dir
	if s.service != "" {
		who += ": " + s.service
	}
	const form = "2006-01-02 15:04:05"
	to := s.to.Format(form)
	if s.from.YearDay() == s.to.YearDay() && s.from.Year() == s.to.Year() {
		to = s.to.Format("15:04:05")
	}
	return who + ", " + s.from.Format(form) + " to " + to
}

// source is an open store, and what of it was asked for.
type source struct {
	*storeFlags
	*store.Reader
	stored
	first, last time.Time // of all that is stored
}

// open opens the store and takes the range of time out of the words, which a filter would read as
// times within a recording.
func (f *storeFlags) open(w *filter.Words) (*source, error) {
	now := time.Now()
	s := &source{storeFlags: f, stored: stored{service: f.only}}
	var err error
	for _, m := range []struct {
		flag string
		text *string
		to   *time.Time
	}{{"--from", &w.From, &s.from}, {"--to", &w.To, &s.to}} {
		if *m.text == "" {
			continue
		}
		if *m.to, err = filter.ParseClock(*m.text, now); err != nil {
			return nil, usage("%s %q: %v", m.flag, *m.text, err)
		}
	}
	if w.From != "" && w.To != "" && !s.from.Before(s.to) {
		return nil, usage("--from %s --to %s is no stretch of time", w.From, w.To)
	}
	if s.Reader, err = store.Open(f.dir); err != nil {
		return nil, failed(err)
	}
	if s.first, s.last, err = s.Range(); err != nil {
		return nil, failed(err)
	}
	if w.From == "" {
		s.from = s.first
	}
	if w.To == "" {
		s.to = s.last
	}
	w.From, w.To = "", ""
	return s, nil
}

// read returns the profile of a part of the store, and reports to w what of the store is damaged. It fails if
// there is nothing.
func (s *source) read(w io.Writer, at stored, keep profile.Keep, over profile.Overflow) (*profile.Profile, error) {
	p, err := s.Profile(store.Query{From: at.from, To: at.to, Service: at.service, Keep: keep, Overflow: over})
	if err != nil {
		return nil, failed(fmt.Errorf("%s: %w", s.name(at), err))
	}
	for _, line := range s.Damage() {
		fmt.Fprintln(w, "candid: "+report.Clean(line))
	}
	if p.SampleCount() == 0 {
		return nil, &codedError{exitNoSamples, fmt.Errorf("%s: no samples%s", s.name(at), s.instead(at))}
	}
	return p, nil
}

// instead says what is stored when there is nothing of what was asked for.
func (s *source) instead(at stored) string {
	if s.first.IsZero() {
		return ": nothing is stored"
	}
	const form = "2006-01-02 15:04:05"
	text := fmt.Sprintf("; stored is %s to %s", s.first.Format(form), s.last.Format(form))
	if at.service == "" {
		return text
	}
	list, err := s.Services(at.from, at.to)
	if err != nil || len(list) == 0 {
		return text
	}
	var names []string
	for _, u := range list[:min(len(list), 8)] {
		names = append(names, report.Clean(u.Name))
	}
	return fmt.Sprintf("; the services with most CPU time then are %s", strings.Join(names, ", "))
}

// uses returns the services for a report, if none was asked for.
func (s *source) uses() ([]report.Service, error) {
	if s.service != "" {
		return nil, nil
	}
	list, err := s.Services(s.from, s.to)
	if err != nil {
		return nil, failed(err)
	}
	out := make([]report.Service, len(list))
	for i, u := range list {
		out[i] = report.Service{Name: u.Name, CPU: int64(u.CPU), Samples: u.Samples}
	}
	return out, nil
}

// oneFile wants one file, or a store instead.
func (f *storeFlags) oneFile(cmd *cobra.Command, args []string) error {
	if err := f.check(args); err != nil || f.dir != "" {
		return err
	}
	return oneFile(cmd, args)
}

// whole reads a file, or a part of a store, for a report. Filters are not applied; of a store the
// services are added to o. name is of what was read.
func (f *storeFlags) whole(cmd *cobra.Command, flags *filterFlags, args []string, over *spill.File, o *report.Options) (p *profile.Profile, name string, spec *filter.Spec, err error) {
	if f.dir == "" {
		name = args[0]
		if spec, err = flags.spec(); err != nil {
			return nil, name, nil, err
		}
		keep := profile.KeepSums
		if spec.Cuts() {
			keep = profile.KeepTracks
		}
		p, _, err = format.Reading{Keep: keep, Overflow: over}.Read(name)
		return p, name, spec, failed(err)
	}
	s, spec, err := f.opened(flags)
	if err != nil {
		return nil, f.dir, nil, err
	}
	if p, err = s.read(cmd.ErrOrStderr(), s.stored, profile.KeepSums, over); err != nil {
		return nil, f.dir, spec, err
	}
	o.Services, err = s.uses()
	return p, s.name(s.stored), spec, err
}

// part reads what the filters leave of a file, or of a part of a store.
func (f *storeFlags) part(cmd *cobra.Command, flags *filterFlags, args []string, keep profile.Keep, over *spill.File) (*profile.Profile, error) {
	w := cmd.ErrOrStderr()
	if f.dir == "" {
		spec, err := flags.spec()
		if err != nil {
			return nil, err
		}
		return flags.read(w, spec, args[0], keep, over)
	}
	s, spec, err := f.opened(flags)
	if err != nil {
		return nil, err
	}
	return s.part(w, flags, spec, s.stored, keep, over)
}

func (s *source) part(w io.Writer, flags *filterFlags, spec *filter.Spec, at stored, keep profile.Keep, over *spill.File) (*profile.Profile, error) {
	var o profile.Overflow
	if over != nil {
		o = over
	}
	p, err := s.read(w, at, keep, o)
	if err != nil {
		return nil, err
	}
	return flags.apply(w, spec, s.name(at), p, 0, keep)
}

// opened opens the store, and reads the filters but for the range of time.
func (f *storeFlags) opened(flags *filterFlags) (*source, *filter.Spec, error) {
	rest := *flags
	s, err := f.open(&rest.words)
	if err != nil {
		return nil, nil, err
	}
	spec, err := rest.spec()
	return s, spec, err
}
