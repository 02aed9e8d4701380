package main

import (
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/doctor"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/report"
)

func newDoctor() *cobra.Command {
	var asJSON bool
	var pids []string
	cmd := &cobra.Command{
		Use:   "doctor [[-p] PID]",
		Short: "Say what this machine permits and what to change",
		Long: `Look at what the kernel, the privileges and the container let candid do, which
engine record would choose and why, and what to change for a better one, as
commands. With -p also at a process: whether it can be read, its runtime, the
flags of its JVM, and which of its modules have symbols.
` + privilegesHint + `

What can be read of a process here, candid dump can show too; it needs no perf
events. Nothing is changed and nothing is sampled. candid exits with 0 if something can
be recorded, 3 if nothing is permitted, 4 if there is no such process.

The JSON has the schema ` + doctor.Schema + `: the verdict; engine, the one that record
would choose; engines; checks, each with a stable id, a state (ok, limited or
no), what was seen, what it means and its fix; target; fixes. Fields may be
added, none changes its meaning.`,
		Example: `  candid doctor                  what can be recorded here, and how well
  candid doctor -p 1234          the same for one process
  candid doctor --json | jq -r '.fixes[].command'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o := doctor.Options{Hz: record.DefaultHz, Version: version()}
			asked, err := given(&pids, args)
			switch {
			case err != nil:
				return err
			case len(asked) > 1:
				return usage("give one process, not %d", len(asked))
			case len(asked) == 1:
				o.PID = asked[0]
			}
			r, err := doctor.Examine(o)
			if err != nil {
				return failed(err)
			}
			out := cmd.OutOrStdout()
			if asJSON {
				enc := json.NewEncoder(out)
				enc.SetIndent("", "  ")
				enc.SetEscapeHTML(false)
				err = enc.Encode(r)
			} else {
				var style doctor.Style
				style.Width, style.Color = report.Terminal(os.Stdout)
				err = r.WriteText(out, style)
			}
			if err != nil {
				return failed(err)
			}
			if r.Verdict.State == doctor.No {
				return &codedError{code: exitPermission}
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVarP(&pids, "pid", "p", nil, "look at this process too: `PID`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
