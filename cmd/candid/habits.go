package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/candid-profiler/candid/internal/capture/launch"
)

// Arguments that people are used to from other profilers are accepted if it is clear what they
// mean, and answered with the right form if it is not.

// elsewhere maps commands of other profilers to candid's equivalents.
var elsewhere = map[string]string{
	"annotate":   "candid report FILE --lines",
	"attach":     "candid record -p PID",
	"collect":    "candid record",
	"compare":    "candid diff BASE NEW",
	"flame":      "candid convert FILE -o flame.html, or candid view FILE",
	"flamegraph": "candid convert FILE -o flame.html, or candid view FILE",
	"jps":        "candid ps",
	"jstack":     "candid dump -p PID",
	"list":       "candid ps",
	"open":       "candid view FILE",
	"print":      "candid report FILE",
	"profile":    "candid record",
	"run":        "candid record COMMAND ARG...",
	"script":     "candid convert FILE -o stacks.collapsed",
	"serve":      "candid view FILE",
	"show":       "candid report FILE, or candid view FILE",
	"stacks":     "candid dump -p PID",
	"start":      "candid record -p PID",
	"threads":    "candid dump -p PID",
	"trace":      "candid record",
	"web":        "candid view FILE",
}

// meaning is candid's equivalent of a flag of other profilers.
type meaning struct {
	commands string // the commands of candid to which it applies, with spaces; "": all
	says     string
}

const (
	rateMeant = "samples per second are -F HZ"
	fileMeant = "the file to write is -o FILE, its extension is the format: .jfr .html .pb.gz .collapsed"
	lockMeant = "waiting for locks is part of -e wall and -e off-cpu (report --state blocked); 'candid dump' shows who holds which lock"
)

// meanings are the flags of perf, py-spy, async-profiler, rbspy and samply that have other names in
// candid, or are not needed.
var meanings = map[string]meaning{
	"f":            {"record convert top diff", fileMeant},
	"file":         {"record convert diff", fileMeant},
	"out":          {"record convert diff", fileMeant},
	"flamegraph":   {"record convert", "a flame graph is -o flame.html"},
	"html":         {"record convert diff", "a flame graph is -o flame.html"},
	"svg":          {"record convert diff", "a flame graph is -o flame.html"},
	"jfr":          {"record convert", "a JFR recording is -o app.jfr"},
	"collapsed":    {"record convert diff", "stacks as lines are -o stacks.collapsed"},
	"r":            {"record top", rateMeant},
	"rate":         {"record top", rateMeant},
	"frequency":    {"record top", rateMeant},
	"hz":           {"record top", rateMeant},
	"c":            {"record top", "every Nth one of an event is -e NAME/period=N/"},
	"count":        {"record top", "every Nth one of an event is -e NAME/period=N/"},
	"period":       {"record top", "every Nth one of an event is -e NAME/period=N/"},
	"cpu":          {"record top", "CPU time is what is sampled by, unless -e says otherwise"},
	"wall":         {"record top", "every thread, running or not, is -e wall"},
	"idle":         {"record top", "every thread, running or not, is -e wall"},
	"off-cpu":      {"record top", "where threads sleep is -e off-cpu"},
	"lock":         {"record top", lockMeant},
	"locks":        {"record top dump", lockMeant},
	"l":            {"dump", "who holds which lock is shown always"},
	"alloc":        {"record top", "candid does not record allocations; what a JVM (jcmd PID JFR.start) or async-profiler recorded of them it reads"},
	"timeout":      {"record top", "how long is -d TIME, such as -d 30s"},
	"time":         {"record top", "how long is -d TIME, such as -d 30s"},
	"subprocesses": {"record top", "processes that the targets start are recorded with --children"},
	"inherit":      {"record top", "processes that the targets start are recorded with --children"},
	"native":       {"record top dump", "native and kernel frames are there always"},
	"tid":          {"record top", "record the process, and look at a thread with --thread REGEX"},
	"stdio":        {"report", "the report is text always; 'candid view FILE' is the same in a browser"},
	"no-children":  {"report", "self and total are both there (--by sorts); --view tree is the call tree"},
	"sort":         {"report", "methods are sorted by --by self or --by total; there are --view methods, tree, threads and states, --lines, and --threads"},
	"filter":       {"", "filters are --thread, --state, --focus, --ignore, --from and --to"},
	"include":      {"", "to keep stacks with a function is --focus REGEX"},
	"exclude":      {"", "to leave out stacks with a function is --ignore REGEX"},
}

// flagFailure says which flag or which value was meant, in terms of this program.
func flagFailure(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		dashed := "--" + name
		if group := unknown.GetSpecifiedShortnames(); group != "" {
			dashed = "-" + name
			// The word may have been meant as a long flag, with one dash as in Java.
			if word, _, _ := strings.Cut(group, "="); len(word) > 1 {
				dashed = "-" + word
				if f := cmd.Flags().Lookup(word); f != nil {
					return fmt.Errorf("unknown flag -%s: it has two dashes, --%[1]s", word)
				}
				if m, ok := meant(cmd, word); ok {
					return fmt.Errorf("unknown flag -%s: %s", word, m)
				}
			}
		}
		if m, ok := meant(cmd, name); ok {
			return fmt.Errorf("unknown flag %s: %s", dashed, m)
		}
		if near := begunFlags(cmd, name); near != "" {
			return fmt.Errorf("unknown flag %s: did you mean %s?", dashed, near)
		}
		return fmt.Errorf("unknown flag %s", dashed)
	case errors.As(err, &value) && takenFlag(cmd.Flags(), value.GetValue()):
		return swallowed(value.GetFlag(), value.GetValue())
	case errors.As(err, &missing):
		return fmt.Errorf("%s has no %s behind it (an empty variable of the shell leaves nothing there)", dashedFlag(missing.GetFlag()), noun(missing.GetFlag()))
	case errors.As(err, &value):
		var number *strconv.NumError
		if errors.As(err, &number) {
			why := "that is no number"
			if errors.Is(number, strconv.ErrRange) {
				why = "that is out of range"
			}
			return fmt.Errorf("--%s %q: %s", value.GetFlag().Name, value.GetValue(), why)
		}
	}
	return err
}

// takenFlag reports whether the value of a flag is itself one of the flags.
func takenFlag(fl *pflag.FlagSet, value string) bool {
	switch {
	case strings.HasPrefix(value, "--"):
		name, _, _ := strings.Cut(value[2:], "=")
		return name == "" || fl.Lookup(name) != nil
	case len(value) == 2 && value[0] == '-':
		return fl.ShorthandLookup(value[1:]) != nil
	}
	return false
}

// swallowed returns the error for a flag that took the next flag as its value.
func swallowed(f *pflag.Flag, value string) error {
	text := fmt.Sprintf("%s got no %s: it took %q, the next flag, as its value; is a variable of the shell empty?", dashedFlag(f), noun(f), value)
	if f.Name == "pid" {
		text += " 'candid ps' lists processes"
	}
	return errors.New(text)
}

// noun returns what a flag's usage calls its value.
func noun(f *pflag.Flag) string {
	name, _ := pflag.UnquoteUsage(f)
	if f.Name == "pid" {
		return "process id"
	}
	return name
}

func dashedFlag(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

// swallows are the flags whose values never look like a flag; an expression may.
var swallows = []string{"pid", "output", "event", "engine", "format", "view", "thread-kind", "state"}

// checkSwallowed finds flags that took another flag as their value, as they do if a shell variable
// between them is empty, and a -p whose value is empty.
func checkSwallowed(cmd *cobra.Command) error {
	fl := cmd.Flags()
	for _, name := range swallows {
		f := fl.Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if takenFlag(fl, v) {
				return usage("%v", swallowed(f, v))
			}
		}
		if name == "pid" && len(values) == 0 {
			return usage("-p got no process id: its value is empty; is a variable of the shell empty? 'candid ps' lists processes")
		}
	}
	return nil
}

// meant returns the equivalent of a flag that this command does not have.
func meant(cmd *cobra.Command, name string) (string, bool) {
	m, ok := meanings[name]
	if !ok || m.commands != "" && !strings.Contains(" "+m.commands+" ", " "+cmd.Name()+" ") {
		return "", false
	}
	return m.says, true
}

// begunFlags returns the flags of a command that begin with name, or that name begins with.
func begunFlags(cmd *cobra.Command, name string) string {
	var near []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && min(len(name), len(f.Name)) >= 3 && (strings.HasPrefix(f.Name, name) || strings.HasPrefix(name, f.Name)) {
			near = append(near, "--"+f.Name)
		}
	})
	return strings.Join(near, " or ")
}

// perfFlags adds flags that perf needs for what candid always does.
func perfFlags(fl *pflag.FlagSet) {
	fl.BoolP("call-stacks", "g", false, "")
	fl.String("call-graph", "", "")
	for _, name := range []string{"call-stacks", "call-graph"} {
		// The flags are defined above: this cannot fail.
		_ = fl.MarkHidden(name)
	}
}

// heedPerf prints an answer to perf's flags.
func heedPerf(fl *pflag.FlagSet, say func(string)) {
	if fl.Changed("call-stacks") || fl.Changed("call-graph") {
		say("stacks are always recorded whole: -g and --call-graph are not needed")
	}
}

// takesCommand ends the flags of a command that launches a program where the program's command line
// begins, so that the program's flags are its own without "--" before them.
func takesCommand(cmd *cobra.Command) { cmd.Flags().SetInterspersed(false) }

// targets returns the processes that are meant, which are those after -p and numbers in place of a
// program to launch, before or between flags; and the program to launch. A program whose name is a
// number is launched after "--".
func targets(cmd *cobra.Command, flag *[]string, args []string) (pids []int, command []string, err error) {
	fl := cmd.Flags()
	for len(args) > 0 && fl.ArgsLenAtDash() < 0 && isNumber(args[0]) {
		number := args[0]
		if err := fl.Parse(args[1:]); err != nil {
			return nil, nil, flagFailure(cmd, err)
		}
		if err := checkSwallowed(cmd); err != nil {
			return nil, nil, err
		}
		*flag = append(*flag, number)
		args = fl.Args()
	}
	if help, _ := fl.GetBool("help"); help {
		return nil, nil, pflag.ErrHelp
	}
	pids, err = processIDs(*flag)
	return pids, args, err
}

// given adds the arguments to the processes of a command that takes no other arguments.
func given(flag *[]string, args []string) ([]int, error) {
	*flag = append(*flag, args...)
	return processIDs(*flag)
}

// isNumber reports whether a word looks like a process ID.
func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// processIDs parses the values of -p.
func processIDs(words []string) (pids []int, err error) {
	for _, w := range words {
		pid, err := strconv.Atoi(strings.TrimSpace(w))
		if err != nil || pid <= 0 {
			if w = strings.TrimSpace(w); strings.ContainsAny(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				return nil, usage("%q is not a process id; 'candid ps %s' lists the processes of that name", w, w)
			}
			return nil, usage("%q is not a process id; 'candid ps' lists processes", w)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// onlyOneWay refuses a command together with other targets, and says what was most likely meant.
func onlyOneWay(all bool, pids []int, command []string) error {
	switch {
	case len(command) == 0:
	case all && len(command) == 2 && command[0] == "sleep":
		d := command[1]
		if isNumber(d) {
			d += "s"
		}
		return usage("-a and a command exclude each other: to record the whole machine for that long give -a -d %s", d)
	case all:
		return usage("-a and a command exclude each other: give -a -d TIME for the whole machine, or the command with --children for all that it starts")
	case len(pids) > 0 && len(command) == 2 && command[0] == "sleep" && isNumber(command[1]):
		return usage("-p and a command exclude each other: to record the process for that long give -p %d -d %ss", pids[0], command[1])
	case len(pids) > 0:
		return usage("unexpected argument %q: give -p PID, or a COMMAND to launch, not both", command[0])
	}
	return nil
}

// notLaunched adds how to record a running process to the error that a program was not found.
func notLaunched(cmd *cobra.Command, command []string, err error) error {
	if !errors.Is(err, launch.ErrNotFound) || cmd.ArgsLenAtDash() == 0 || strings.Contains(command[0], "/") {
		return err
	}
	return fmt.Errorf("%w; a process that runs already is given with -p PID: 'candid ps %s' lists those of that name", err, command[0])
}
