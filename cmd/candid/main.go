// Command candid is a sampling profiler that shows where a running program spends its time, from
// outside the program.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/candid-profiler/candid/internal/confine"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
)

func main() {
	confined, confining = confine.Reader, true
	// The copy of candid through which a program is launched never gets here: it waits in the
	// package launch/early.
	os.Exit(run(os.Args[1:]))
}

// run executes a command line and returns the exit code.
func run(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := knownCommand(root, args)
	if err == nil {
		err = root.Execute()
	}
	if err == nil {
		return exitOK
	}
	var coded *codedError
	if !errors.As(err, &coded) {
		// Everything that cobra itself rejects is a usage error.
		coded = &codedError{code: exitUsage, err: fmt.Errorf("%w; see 'candid %s--help'", err, commandWord(root, args))}
		err = coded
	}
	if coded.err != nil {
		fmt.Fprintln(os.Stderr, "candid: "+oneLine(err.Error()))
	}
	return coded.code
}

// knownCommand refuses a first word that is not a command, and suggests the most similar one. cobra
// would parse the flags after it first, and refuse those.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "__") { // __complete
		return nil
	}
	for _, c := range root.Commands() {
		if c.Name() == args[0] {
			if c.Name() == "help" {
				return knownCommand(root, args[1:])
			}
			return nil
		}
	}
	if here, ok := elsewhere[args[0]]; ok {
		return fmt.Errorf("unknown command %q: that is %s", args[0], here)
	}
	root.SuggestionsMinimumDistance = 2
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("unknown command %q: did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// noArguments refuses arguments of commands that take only flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("unexpected argument %q: candid %s takes flags only; see 'candid %[2]s --help'", args[0], cmd.Name())
	}
	return nil
}

// completionShell refuses a shell for which there is no completion.
func completionShell(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var shells []string
	for _, c := range cmd.Commands() {
		shells = append(shells, c.Name())
	}
	return usage("no completion for %q: there is one for %s", args[0], strings.Join(shells, ", "))
}

func commandWord(root *cobra.Command, args []string) string {
	if c, _, err := root.Find(args); err == nil && c != root {
		return c.Name() + " "
	}
	return ""
}

func oneLine(s string) string {
	return profile.PlainText(strings.Join(strings.Fields(strings.ReplaceAll(s, "\n", "; ")), " "))
}

// profiles says which programs candid profiles on the system that it runs on.
func profiles() string {
	switch {
	case runtime.GOOS == "linux":
		return " on Linux"
	case runtime.GOOS == "windows" && runtime.GOARCH == "amd64":
		return " on Windows"
	}
	return "\non Linux and Windows. On this system (" + runtime.GOOS + "/" + runtime.GOARCH + ") it reads recordings, and cannot make any"
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "candid",
		Short: "See where a running program spends its time, from outside the program",
		Long: `candid is a sampling profiler for Java, .NET and native programs` + profiles() + `.

It looks at a running program from outside: no agent, no restart, no flag. It
copies the registers and the stack of a thread that is on a CPU, lets the thread
go, and walks the copy later. What it is not sure of, it marks.
` + privilegesHint + `

Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 not permitted, 4 no such target,
5 no samples, 6 recorded and saved, but the targets given with -p ended before -d had
passed or one was killed by a signal; when it launches a program, that program's own
exit code (128+n if signal n ended it), or 125 candid failed, 126 not executable,
127 not found.`,
		Example: `  candid record -p 1234 -d 30s -o flame.html    profile a running process for 30 s
  candid record -o app.jfr java -jar app.jar     the same of a program that it launches
  candid report app.jfr                          where the time went
  candid view app.jfr                            the same in a browser
  candid diff before.jfr after.jfr               what got slower, what got faster
  candid top -p 1234                             the same live, in the terminal
  candid dump -p 1234                            every thread's stack now, what it waits for,
                                                 who holds that, and deadlocks
  candid ps                                      what can be profiled here
  candid doctor                                  what this machine permits, what to change`,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Suggestions on several lines would break "one clear line".
		DisableSuggestions: true,
		Args:               cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	cobra.EnableCommandSorting = false // in the order in which they are needed
	root.AddCommand(newRecord(), newReport(), newView(), newDiff(), newConvert(), newPGO(), newAnnotate(), newTop(), newDump(), newPS(), newDoctor(), newAgent(), newVersion(), newPrivileges())
	root.SetFlagErrorFunc(flagFailure)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		limitMemory(cmd)
		switch open := cmd.Flags().Lookup("open"); cmd.Name() {
		case "report", "convert", "diff", "view":
			// A browser that candid starts would be confined too.
			if open == nil || open.Value.String() == "false" {
				confined()
			}
		}
		return checkSwallowed(cmd)
	}
	wrapFlags(root)
	// The original name of --children was --child.
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "child" {
			name = "children"
		}
		return pflag.NormalizedName(name)
	})
	completeValues(root)
	root.Version = version() // for --version, which many users try first
	root.SetVersionTemplate(versionLine() + "\n")
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Example = "  candid help record"
		case "completion":
			c.Args = completionShell
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			c.Example = `  source <(candid completion bash)                                     now, in this shell
  candid completion bash > /etc/bash_completion.d/candid               from the next shell on
  candid completion zsh > "${fpath[1]}/_candid"
  candid completion fish > ~/.config/fish/completions/candid.fish`
		}
	}
	return root
}

// wrapFlags wraps the help of flags to the width of the terminal.
func wrapFlags(root *cobra.Command) {
	cobra.AddTemplateFunc("wrapped", func(flags *pflag.FlagSet) string {
		width, _ := report.Terminal(os.Stdout)
		if width == 0 {
			width = 100
		}
		return strings.TrimRight(flags.FlagUsagesWrapped(max(width, 60)), "\n ")
	})
	t := root.UsageTemplate()
	for _, flags := range []string{"LocalFlags", "InheritedFlags"} {
		t = strings.ReplaceAll(t, "{{."+flags+".FlagUsages | trimTrailingWhitespaces}}", "{{wrapped ."+flags+"}}")
	}
	root.SetUsageTemplate(t)
}
