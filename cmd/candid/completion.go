package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/candid-profiler/candid/internal/capture/engines"
	"github.com/candid-profiler/candid/internal/capture/event"
	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
	"github.com/candid-profiler/candid/internal/runtimes"
)

// completeValues lets shells complete the values of flags, besides the flags themselves.
func completeValues(root *cobra.Command) {
	values := map[string]func() []string{
		"engine":      func() []string { return append([]string{"auto"}, engines.Names()...) },
		"format":      func() []string { return strings.Split(format.Names(), ", ") },
		"thread-kind": filter.ThreadKinds,
		"state":       func() []string { return append(profile.StateNames(), filter.Waits) },
		"pid":         pids,
	}
	for _, c := range root.Commands() {
		own := map[string]func() []string{}
		switch c.Name() {
		case "record", "top":
			own["event"] = event.Names
		case "report":
			own["view"] = report.ViewNames
			own["by"] = func() []string { return []string{"self", "total"} }
		case "diff":
			own["view"] = func() []string { return []string{"methods", "tree", "callers"} }
			own["normalize"] = func() []string { return []string{"total", "time", "none"} }
			own["by"] = func() []string { return []string{"self", "total"} }
			own["format"] = func() []string { return slices.Sorted(maps.Keys(diffWriters)) }
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			list := own[f.Name]
			if list == nil {
				list = values[f.Name]
			}
			// record's --view takes no value.
			if list == nil || f.NoOptDefVal != "" {
				return
			}
			several := strings.HasSuffix(f.Value.Type(), "Slice")
			// The flag exists and has no completion yet: this cannot fail.
			_ = c.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
				return completed(list(), begun, several), cobra.ShellCompDirectiveNoFileComp
			})
		})
	}
}

// completed returns the values that begin as begun does. If a flag takes several, begun may contain
// others and a comma before it.
func completed(values []string, begun string, several bool) []string {
	before := ""
	if i := strings.LastIndexByte(begun, ','); several && i >= 0 {
		before = begun[:i+1]
	}
	var out []string
	for _, v := range values {
		if strings.HasPrefix(before+v, begun) {
			out = append(out, before+v)
		}
	}
	return out
}

// pids returns the processes that 'candid ps' lists, with their commands.
func pids() []string {
	procs, err := runtimes.List()
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range procs {
		if r := newPSRow(p); managed(p.Runtime.Kind) && r.WhyNot == "" {
			text := []rune(r.Runtime + "  " + r.Command)
			out = append(out, strconv.Itoa(p.PID)+"\t"+string(text[:min(len(text), 80)]))
		}
	}
	return out
}
