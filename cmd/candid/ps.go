package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/redact"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/target"
)

func newPS() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "ps [REGEX]",
		Short: "List what can be profiled here",
		Long: `List the processes of this machine with the runtime that each is built on, and
why one cannot be profiled. Programs without a known runtime are left out unless
-a is given; with a REGEX, those whose command matches are listed.
Passwords and tokens in it are masked. If none matches, the exit code is 4.`,
		Example: `  candid ps             managed programs: JVM, .NET, Go and so on
  candid ps -a          every process
  candid ps tomcat --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("give one REGEX, not %d: in quotes, if there are spaces in it", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var re *regexp.Regexp
			if len(args) == 1 {
				var err error
				if re, err = regexp.Compile(args[0]); err != nil {
					return usage("%v", err)
				}
			}
			if err := enoughFiles("ps"); err != nil {
				return err
			}
			procs, err := runtimes.List()
			if err != nil {
				return failed(err)
			}
			var shown []psRow
			closed := 0 // processes whose runtime cannot be determined
			for _, p := range procs {
				r := newPSRow(p)
				switch {
				case p.PID == os.Getpid():
				case re != nil && !re.MatchString(r.Command):
				case re == nil && !all && !managed(p.Runtime.Kind):
					switch p.Reason {
					case target.ReasonOtherUser, target.ReasonCapabilities, target.ReasonYama, target.ReasonPolicy:
						closed++
					}
				default:
					shown = append(shown, r)
				}
			}
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				if shown == nil {
					shown = []psRow{}
				}
				if err := enc.Encode(shown); err != nil {
					return failed(err)
				}
			}
			if len(shown) == 0 {
				if re != nil {
					return &codedError{exitNoTarget, fmt.Errorf("no process matches %s; 'candid ps -a' lists all", re)}
				}
				none := "no program with a runtime that candid knows"
				if closed > 0 {
					none += " among those that can be looked at"
				}
				fmt.Fprintln(cmd.ErrOrStderr(), "candid: "+none+"; 'candid ps -a' lists all")
			} else if !asJSON {
				if err := printPS(cmd.OutOrStdout(), shown, terminalWidth(cmd.OutOrStdout())); err != nil {
					return failed(err)
				}
			}
			if closed > 0 {
				processes := "process, of another user or protected, was"
				if closed > 1 {
					processes = "processes, of other users or protected, were"
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "candid: %d %s not looked at: 'sudo candid ps' lists all that there is\n", closed, processes)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list every process")
	return cmd
}

// managed reports whether people would look for such a process first.
func managed(k runtimes.Kind) bool { return k != runtimes.Unknown && k != runtimes.Native }

// psRow is a line of the list. Its JSON form is stable.
type psRow struct {
	PID     int    `json:"pid"`
	User    string `json:"user"`
	Runtime string `json:"runtime"`
	Threads int    `json:"threads"`
	Command string `json:"command"`
	WhyNot  string `json:"why_not,omitempty"` // why it cannot be profiled
}

func newPSRow(p runtimes.Process) psRow {
	r := psRow{PID: p.PID, User: p.User, Runtime: p.Runtime.String(), Threads: p.Threads}
	r.Command = plain(redact.Command(p.Cmdline))
	if r.Command == "" {
		r.Command = "[" + plain(p.Comm) + "]"
	}
	if p.Reason != target.ReasonNone {
		r.WhyNot = p.Reason.String()
		r.Runtime = "-"
	}
	return r
}

// plain makes strings from a target safe for a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

func printPS(w io.Writer, rows []psRow, width int) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "PID\tUSER\tRUNTIME\tTHREADS\tCOMMAND")
	for _, r := range rows {
		text := r.Command
		if r.WhyNot != "" {
			text = "(" + r.WhyNot + ") " + text
		}
		if width > 60 {
			if cut := []rune(text); len(cut) > width-46 {
				text = string(cut[:width-47]) + "…"
			}
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%d\t%s\n", r.PID, r.User, r.Runtime, r.Threads, text)
	}
	return tw.Flush()
}
