package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Describe says in plain words what a configuration means, one line each.
func (c *Config) Describe() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	what := "CPU time"
	if c.Wall {
		what += ", wall-clock time"
	}
	if c.OffCPU {
		what += fmt.Sprintf(", time off the CPU from %v on", c.MinSleep)
	}
	say("sampling: all processes, %g times each second of CPU time: %s", c.Rate, what)
	for i, r := range c.Rules {
		say("service rule %d (line %d): %s are %q", i+1, r.Line, r.describe(), r.Name)
	}
	rest := "processes"
	if len(c.Rules) > 0 {
		rest = "all others"
	}
	say("services: %s are named after their systemd unit, else container, jar or main class, program", rest)
	if len(c.Labels) > 0 {
		var l []string
		for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
			l = append(l, k+"="+c.Labels[k])
		}
		say("labels: everything that is pushed has %s", strings.Join(l, ", "))
	}
	out = append(out, c.Store.describe())
	out = append(out, c.Listen.describe()...)
	for i, p := range c.Push {
		out = append(out, p.describe(i)...)
	}
	var limits []string
	if c.Limits.CPU > 0 {
		limits = append(limits, fmt.Sprintf("more than %g%% of the machine's CPUs for a minute", c.Limits.CPU*100))
	}
	if c.Limits.Memory > 0 {
		limits = append(limits, fmt.Sprintf("more than %s of memory", Bytes(c.Limits.Memory)))
	}
	if len(limits) > 0 {
		say("limits: if candid uses %s, it samples less often and says so", strings.Join(limits, ", or "))
	} else {
		say("limits: none")
	}
	return append(out, c.Capture.describe()...)
}

func (r *Rule) describe() string {
	var list []string
	if r.Exe != "" {
		list = append(list, fmt.Sprintf("whose program is %s", r.Exe))
	}
	if r.Cmdline != nil {
		list = append(list, fmt.Sprintf("whose command line matches %s", r.Cmdline))
	}
	if r.Cgroup != "" {
		list = append(list, fmt.Sprintf("whose control group has %s", r.Cgroup))
	}
	if r.User != "" {
		list = append(list, fmt.Sprintf("of user %s", r.User))
	}
	if len(list) == 0 {
		return "all processes"
	}
	return "processes " + strings.Join(list, " and ")
}

func (s *Store) describe() string {
	if s.Dir == "" {
		return "store: none, no history is kept on this machine"
	}
	text := "store: history in " + s.Dir
	if s.Keep > 0 {
		text += ", days are deleted after " + Duration(s.Keep)
	}
	if s.Max > 0 {
		text += ", the oldest ones when it is larger than " + Bytes(s.Max)
	}
	if s.MinFree != (Free{}) {
		text += fmt.Sprintf(", or when less than %s of the disk is free", s.MinFree)
	}
	return text
}

func (l *Listen) describe() []string {
	switch {
	case l.Address == "":
		return []string{"listen: nothing; candid agent status still asks through the agent's socket"}
	case l.Unix():
		return []string{"listen: metrics on the socket " + l.Address + ", for its user and group"}
	}
	text := "listen: metrics on " + l.Address
	var who []string
	if l.TLS.CA != "" && l.TLS.Cert != "" {
		who = append(who, "with a certificate that "+l.TLS.CA+" signed")
	}
	if l.TokenFile != "" {
		who = append(who, "with the token in "+l.TokenFile)
	}
	switch {
	case len(who) > 0:
		text += ", for clients " + strings.Join(who, " and ")
	default:
		text += ", for users of this machine"
	}
	out := []string{text}
	if l.Open() && l.TLS.Cert == "" {
		out = append(out, "listen: warning: without tls the token goes over the network as it is")
	}
	return out
}

func (p *Push) describe(i int) []string {
	text := fmt.Sprintf("push %d (line %d): to %s at %s, every %s", i+1, p.Line, p.Type, p.URL, Duration(p.Every))
	if p.Tenant != "" {
		text += ", for tenant " + p.Tenant
	}
	if p.TokenFile != "" {
		text += ", with the token in " + p.TokenFile
	}
	if p.TLS.Cert != "" {
		text += ", with the certificate in " + p.TLS.Cert
	}
	if p.Probability < 1 {
		text += fmt.Sprintf(", from %g%% of all hosts, whose values are multiplied accordingly", p.Probability*100)
	}
	return []string{text + fmt.Sprintf("; what cannot be sent waits for at most %s, up to %s", Duration(p.Buffer.Age), Bytes(p.Buffer.Max))}
}

func (c *Capture) describe() []string {
	if c.Concurrent == 0 {
		return []string{"capture: not permitted"}
	}
	out := []string{fmt.Sprintf("capture: on demand at up to %g Hz for up to %s, %d at once", c.MaxRate, Duration(c.MaxDuration), c.Concurrent)}
	for _, w := range c.When {
		out = append(out, fmt.Sprintf("capture (line %d): %s at %g Hz when service %s uses more than %g CPUs for %s, not again for %s",
			w.Line, Duration(w.Duration), w.Rate, w.Service, w.CPUs, Duration(w.For), Duration(w.Pause)))
	}
	return out
}

// Missing returns the files that a configuration names and that cannot be read, one line each.
func (c *Config) Missing() []Problem {
	var out []Problem
	look := func(line int, what, path string) {
		if path == "" {
			return
		}
		f, err := os.Open(path)
		if err != nil {
			out = append(out, Problem{line, what + ": " + err.Error()})
			return
		}
		f.Close()
	}
	files := func(line int, what string, t TLS, token string) {
		look(line, what+": tls: ca", t.CA)
		look(line, what+": tls: cert", t.Cert)
		look(line, what+": tls: key", t.Key)
		look(line, what+": token_file", token)
	}
	files(c.Listen.Line, "listen", c.Listen.TLS, c.Listen.TokenFile)
	for _, p := range c.Push {
		files(p.Line, "push", p.TLS, p.TokenFile)
	}
	return out
}
