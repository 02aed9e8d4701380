// Package service decides which service a process belongs to: by the rules of the agent's file, else
// by systemd's unit, container, jar or main class, and program. A process's environment is never
// read.
package service

import (
	"os/user"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/candid-profiler/candid/internal/agent/config"
	"github.com/candid-profiler/candid/internal/redact"
)

const (
	// Kernel is the service of the kernel's own threads, and Unknown that of processes of which
	// nothing is known.
	Kernel  = "kernel"
	Unknown = "unknown"
	// maxName bounds names in bytes, and maxLine how much of a command line is looked at.
	maxName = 200
	maxLine = 32 << 10
)

// Process is what services are decided by.
type Process struct {
	PID, Parent int
	Exe         string   // path of the program, "" if not known
	Args        []string // command line, nil if not known
	Comm        string
	UID         int // -1: not known
	Kernel      bool
}

// Decision is what a process belongs to.
type Decision struct {
	Service string
	How     string // "rule 2", "unit", "container", "jar or class", "program"
	// Container is the ID of the process's container, and Pod the UID of its pod; "" if there is none.
	Container, Pod string
}

// Decider decides. It is not safe for several goroutines.
type Decider struct {
	rules  []rule
	names  *Containers
	places map[string]*place // by content of the cgroup file
	of     map[int]*place    // by pid, for the children of processes that have ended
	read   func(pid int) string
}

// rule is a config.Rule that is ready for use.
type rule struct {
	config.Rule
	exe, cgroup *regexp.Regexp
	uid         int // -1: any
	nobody      bool
	dynamic     bool // the name depends on the command line
}

// NewDecider returns a Decider by the rules of a file. names may be nil.
func NewDecider(rules []config.Rule, names *Containers) *Decider {
	d := &Decider{names: names, places: map[string]*place{}, of: map[int]*place{}, read: readPlace}
	for _, r := range rules {
		c := rule{Rule: r, uid: -1, dynamic: strings.Contains(r.Name, "$")}
		if r.Exe != "" {
			c.exe = globbed(r.Exe, true)
		}
		if r.Cgroup != "" {
			c.cgroup = globbed(r.Cgroup, strings.ContainsAny(r.Cgroup, "*?["))
		}
		if r.User != "" {
			if uid, err := strconv.Atoi(r.User); err == nil {
				c.uid = uid
			} else if u, err := user.Lookup(r.User); err == nil {
				c.uid, _ = strconv.Atoi(u.Uid)
			} else {
				c.nobody = true
			}
		}
		d.rules = append(d.rules, c)
	}
	return d
}

// globbed returns an expression for a glob in which * may stand for slashes too; whole says that it
// has to match all of a text.
func globbed(glob string, whole bool) *regexp.Regexp {
	s := regexp.QuoteMeta(glob)
	if whole {
		s = strings.NewReplacer(`\*`, `.*`, `\?`, `.`, `\[`, `[`, `\]`, `]`).Replace(s)
		s = "^(?:" + s + ")$"
	}
	re, err := regexp.Compile(s)
	if err != nil {
		re = regexp.MustCompile("^" + regexp.QuoteMeta(glob) + "$")
	}
	return re
}

// maxPlaces bounds what is remembered of control groups, and of processes.
const maxPlaces = 1 << 14

// place returns where a process is, or was: control groups are inherited, so the parent's is that of
// a process that has ended.
func (d *Decider) place(p *Process) *place {
	b := d.read(p.PID)
	if b == "" {
		if at := d.of[p.PID]; at != nil && p.Parent == 0 {
			return at
		}
		if p.Parent != 0 {
			if b = d.read(p.Parent); b == "" {
				if at := d.of[p.Parent]; at != nil {
					return at
				}
			}
		}
	}
	at := d.places[b]
	if at == nil {
		if len(d.places) >= maxPlaces {
			clear(d.places)
		}
		at = parsePlace(b)
		d.places[b] = at
	}
	if len(d.of) >= maxPlaces {
		clear(d.of)
	}
	d.of[p.PID] = at
	return at
}

// Decide returns what a process belongs to.
func (d *Decider) Decide(p *Process) Decision {
	if p.Kernel {
		return Decision{Service: Kernel, How: "kernel"}
	}
	at := d.place(p)
	out := Decision{Container: at.container, Pod: at.pod}
	exe := strings.TrimSuffix(p.Exe, " (deleted)")
	line := joined(p.Args)
	for i := range d.rules {
		if r := &d.rules[i]; r.matches(p, exe, line, at) {
			if name := Clean(r.name(p.Args, line)); name != "" {
				out.Service, out.How = name, "rule "+strconv.Itoa(i+1)
				return out
			}
		}
	}
	base := path.Base(exe)
	java := ""
	if base == "java" || base == "javaw" {
		java = javaName(p.Args)
	}
	switch {
	case at.unit != "":
		out.Service, out.How = at.unit, "unit"
	case at.container != "":
		out.Service, out.How = d.names.Name(at.container), "container"
	case java != "":
		out.Service, out.How = redact.Value("", java), "jar or class"
	case exe != "":
		out.Service, out.How = base, "program"
	default:
		out.Service, out.How = p.Comm, "program"
	}
	if out.Service = Clean(out.Service); out.Service == "" {
		out.Service = Unknown
	}
	return out
}

func (r *rule) matches(p *Process, exe, line string, at *place) bool {
	switch {
	case r.nobody, r.uid >= 0 && r.uid != p.UID:
		return false
	case r.exe != nil && !r.exe.MatchString(path.Base(exe)) && !r.exe.MatchString(exe):
		return false
	case r.Cmdline != nil && !r.Cmdline.MatchString(line):
		return false
	case r.cgroup == nil:
		return true
	}
	for _, c := range at.paths {
		if r.cgroup.MatchString(c) {
			return true
		}
	}
	return false
}

// name returns the rule's name for a command line that matches. What is taken from the line comes
// from the line with its secrets masked.
func (r *rule) name(args []string, line string) string {
	if !r.dynamic {
		return r.Name
	}
	if r.Cmdline == nil {
		return strings.ReplaceAll(r.Name, "$$", "$")
	}
	masked := joined(redact.Args(bounded(args)))
	m := r.Cmdline.FindStringSubmatchIndex(masked)
	if m == nil {
		// It matches only what is secret.
		m = r.Cmdline.FindStringSubmatchIndex(line)
		return string(r.Cmdline.ExpandString(nil, r.Name, strings.Repeat("*", len(line)), m))
	}
	return string(r.Cmdline.ExpandString(nil, r.Name, masked, m))
}

// bounded returns the arguments of a command up to maxLine bytes.
func bounded(args []string) []string {
	n := 0
	for i, a := range args {
		if n += len(a) + 1; n > maxLine {
			return args[:i]
		}
	}
	return args
}

// joined returns a command line as one text, at most maxLine bytes.
func joined(args []string) string { return strings.Join(bounded(args), " ") }

// Clean returns a name without what names of services may not have: control characters, broken
// text, more than 200 bytes.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || !unicode.IsPrint(r) && r != ' ' {
			return '_'
		}
		return r
	}, strings.TrimSpace(s))
	if len(s) > maxName {
		s = strings.ToValidUTF8(s[:maxName], "")
	}
	return s
}

// Matches reports whether a service's name matches a glob, in which * stands for any text.
func Matches(glob, name string) bool { return glob == name || globbed(glob, true).MatchString(name) }
