package pprof

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// commentPrefix begins the lines that keep what pprof has no field for.
const commentPrefix = "candid: "

// remarks returns what pprof has no field for, as the lines that parseComments reads: a keyword,
// then numbers and quoted strings. Lines that a person may want to read are comments, which go tool
// pprof prints above its lists. The rest, a line for each thread, is only in the table of strings,
// where it disturbs no one.
func remarks(p *profile.Profile) (comments, silent []string) {
	line := func(format string, args ...any) string { return commentPrefix + fmt.Sprintf(format, args...) }
	text := func(key, value string) {
		if value != "" {
			comments = append(comments, line("%s %q", key, value))
		}
	}
	text("version", p.Meta.Version)
	text("command", p.Meta.Command)
	text("host", p.Meta.Host)
	text("describe", p.Meta.Describe)
	for _, n := range p.Meta.Notes {
		text("note", n)
	}
	comments = append(comments, line("losses %d %d", p.Losses.Lost, p.Losses.Throttled))
	if p.Meta.Engine != "" {
		silent = append(silent, line("engine %q", p.Meta.Engine))
	}
	if c := p.Meta.Cost; c != (profile.Cost{}) {
		silent = append(silent, line("cost %d %d %d %d %d %d %d", c.Copying, c.TargetCPU, c.OwnCPU, c.Memory, c.FirstWalked, c.Samples, c.Recorded))
	}
	for _, e := range p.Events {
		l := line("event %q %q %d", e.Name, e.Unit, e.Period)
		if e.Kind != profile.EventKindOf(e.Name) {
			l += fmt.Sprintf(" %q", e.Kind.String())
		}
		silent = append(silent, l)
	}
	for _, pr := range p.Processes {
		silent = append(silent, line("process %d %q %q", pr.PID, pr.Runtime, pr.Command))
	}
	for _, t := range p.Threads {
		silent = append(silent, line("thread %d %d %d %q %q %q", t.PID, t.TID, t.KernelCPU, t.OSName, strings.ToValidUTF8(t.Name, "\uFFFD"), t.Kind))
	}
	return comments, silent
}

// silentRemark reports whether a string of a file's table is a line that is not among its comments.
func silentRemark(s string) bool {
	rest, ok := strings.CutPrefix(s, commentPrefix)
	if !ok {
		return false
	}
	key, _, _ := strings.Cut(rest, " ")
	switch key {
	case "engine", "cost", "event", "process", "thread":
		return true
	}
	return false
}

// parseComments reads the lines of remarks into p, and reports whether there were any, that is,
// whether candid wrote the file. Comments of other writers become notes.
func parseComments(lines []string, p *profile.Profile) (ours bool) {
	for _, line := range lines {
		rest, ok := strings.CutPrefix(line, commentPrefix)
		if !ok {
			p.Meta.Notes = append(p.Meta.Notes, line)
			continue
		}
		ours = true
		key, rest, _ := strings.Cut(rest, " ")
		args := arguments{rest: rest}
		switch key {
		case "version":
			p.Meta.Version = args.text()
		case "command":
			p.Meta.Command = args.text()
		case "host":
			p.Meta.Host = args.text()
		case "engine":
			p.Meta.Engine = args.text()
		case "describe":
			p.Meta.Describe = args.text()
		case "note":
			p.Meta.Notes = append(p.Meta.Notes, args.text())
		case "losses":
			p.Losses.Lost, p.Losses.Throttled = args.number(), args.number()
		case "cost":
			p.Meta.Cost = profile.Cost{
				Copying: args.duration(), TargetCPU: args.duration(), OwnCPU: args.duration(), Memory: args.number(), FirstWalked: args.duration(),
				Samples: args.number(), Recorded: args.duration(),
			}
		case "event":
			e := profile.Event{Name: args.text(), Unit: args.text(), Period: args.number()}
			e.Kind = profile.StoredEventKind(args.text(), e.Name)
			p.Events = append(p.Events, e)
		case "process":
			p.Processes = append(p.Processes, profile.Process{PID: int(args.number()), Runtime: args.text(), Command: args.text()})
		case "thread":
			p.Threads = append(p.Threads, profile.Thread{
				PID: int(args.number()), TID: int(args.number()), KernelCPU: args.number(), OSName: args.text(), Name: args.text(), Kind: args.text(),
			})
		}
	}
	return ours
}

// arguments reads numbers and quoted strings. If one is missing or malformed, in a file that
// someone edited, it is read as 0 and "".
type arguments struct{ rest string }

func (a *arguments) number() uint64 {
	word, rest, _ := strings.Cut(a.rest, " ")
	a.rest = rest
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// duration reads a number of ns.
func (a *arguments) duration() time.Duration {
	return time.Duration(min(a.number(), math.MaxInt64))
}

func (a *arguments) text() string {
	quoted, err := strconv.QuotedPrefix(a.rest)
	if err != nil {
		a.rest = ""
		return ""
	}
	a.rest = strings.TrimPrefix(a.rest[len(quoted):], " ")
	s, err := strconv.Unquote(quoted)
	if err != nil {
		return ""
	}
	return s
}
