package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/spill"
)

// againstFlags say with which range of time of a store another one is compared.
type againstFlags struct{ earlier, from, to string }

func (f *againstFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.earlier, "against", "", "with --store: compare with the same time yesterday, last-week, or `EARLIER` by such as 2h or 3d")
	fl.StringVar(&f.from, "base-from", "", "with --store: BASE begins at this `TIME`, written as for --from")
	fl.StringVar(&f.to, "base-to", "", "with --store: BASE ends before this `TIME` (default as long as NEW)")
}

// base returns the range of time that another one is compared with.
func (f *againstFlags) base(of stored) (stored, error) {
	out, length := of, of.to.Sub(of.from)
	var err error
	now := time.Now()
	switch {
	case f.earlier != "" && f.from+f.to != "":
		return out, usage("give --against, or --base-from and --base-to, not both")
	case f.from != "":
		if out.from, err = filter.ParseClock(f.from, now); err != nil {
			return out, usage("--base-from %q: %v", f.from, err)
		}
		out.to = out.from.Add(length)
		if f.to == "" {
			return out, nil
		}
		if out.to, err = filter.ParseClock(f.to, now); err != nil {
			return out, usage("--base-to %q: %v", f.to, err)
		}
		if !out.from.Before(out.to) {
			return out, usage("--base-from %s --base-to %s is no stretch of time", f.from, f.to)
		}
		return out, nil
	case f.to != "":
		return out, usage("--base-to needs --base-from")
	case f.earlier == "yesterday":
		// By the calendar: a day may have 23 or 25 hours.
		out.from, out.to = of.from.AddDate(0, 0, -1), of.to.AddDate(0, 0, -1)
		return out, nil
	case f.earlier == "last-week":
		out.from, out.to = of.from.AddDate(0, 0, -7), of.to.AddDate(0, 0, -7)
		return out, nil
	case f.earlier != "":
		if length, err = filter.ParseSpan(f.earlier); err != nil || length == 0 {
			return out, usage("--against %q: there are yesterday, last-week, or how much earlier: 2h, 3d", f.earlier)
		}
	}
	out.from, out.to = of.from.Add(-length), of.to.Add(-length)
	return out, nil
}

// readStore reads two ranges of time of a store, and selects what is compared.
func (f *diffFlags) readStore(cmd *cobra.Command) (sides [2]diff.Side, names [2]string, err error) {
	s, spec, err := f.store.opened(&f.filter)
	if err != nil {
		return sides, names, err
	}
	base, err := f.against.base(s.stored)
	if err != nil {
		return sides, names, err
	}
	var profiles [2]*profile.Profile
	var over [2]spill.File
	for i, at := range []stored{base, s.stored} {
		defer over[i].Close()
		names[i] = s.name(at)
		if profiles[i], err = s.read(cmd.ErrOrStderr(), at, profile.KeepWeights, &over[i]); err != nil {
			return sides, names, err
		}
	}
	if sides, err = diff.Choose(names, profiles, spec); err != nil {
		return sides, names, diffFailure(names, err)
	}
	return sides, names, failed(errors.Join(profiles[0].Err(), profiles[1].Err()))
}
