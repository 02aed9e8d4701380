package pprof

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
)

// commentPrefix begins the comments that keep what pprof has no field for.
const commentPrefix = "candid: "

// comments are the lines that parseComments reads: a keyword, then numbers and
// quoted strings.
func comments(p *profile.Profile) []string {
	var out []string
	add := func(format string, args ...any) {
		out = append(out, commentPrefix+fmt.Sprintf(format, args...))
	}
	text := func(key, value string) {
		if value != "" {
			add("%s %q", key, value)
		}
	}
	text("version", p.Meta.Version)
	text("command", p.Meta.Command)
	text("host", p.Meta.Host)
	text("engine", p.Meta.Engine)
	text("describe", p.Meta.Describe)
	for _, n := range p.Meta.Notes {
		text("note", n)
	}
	add("losses %d %d", p.Losses.Lost, p.Losses.Throttled)
	for _, e := range p.Events {
		add("event %q %q %d", e.Name, e.Unit, e.Period)
	}
	for _, pr := range p.Processes {
		add("process %d %q %q", pr.PID, pr.Runtime, pr.Command)
	}
	for _, t := range p.Threads {
		add("thread %d %d %d %q %q", t.PID, t.TID, t.KernelCPU, t.OSName, strings.ToValidUTF8(t.Name, "\uFFFD"))
	}
	return out
}

// parseComments reads what comments wrote into p, and gives whether there was
// any of it: whether candid wrote the file. Other people's comments become notes.
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
		case "event":
			p.Events = append(p.Events, profile.Event{Name: args.text(), Unit: args.text(), Period: args.number()})
		case "process":
			p.Processes = append(p.Processes, profile.Process{PID: int(args.number()), Runtime: args.text(), Command: args.text()})
		case "thread":
			p.Threads = append(p.Threads, profile.Thread{
				PID: int(args.number()), TID: int(args.number()), KernelCPU: args.number(), OSName: args.text(), Name: args.text(),
			})
		}
	}
	return ours
}

// arguments reads numbers and quoted strings. What is missing or malformed, in
// a file that someone edited, reads as 0 and "".
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
