package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/report"
)

// diffOf returns the output of candid diff --json.
func diffOf(t *testing.T, args ...string) (d report.Diff, rows map[string]report.DiffRow) {
	t.Helper()
	if err := json.Unmarshal([]byte(ok(t, append([]string{"diff", "--json"}, args...)...).out), &d); err != nil {
		t.Fatal(err)
	}
	rows = map[string]report.DiffRow{}
	for _, m := range d.Methods {
		rows[m.Name] = m
	}
	return d, rows
}

// TestDiffIsTrue records a program twice whose functions share its time in a different ratio each
// time: the difference agrees with the program's own account.
func TestDiffIsTrue(t *testing.T) {
	t.Parallel()
	able(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	record := func(ratio, name string) (file string, red float64) {
		c := exec.Command(binary, "record", "-q", "-F", "1500", "-o", filepath.Join(dir, name), "--", self)
		c.Env = append(os.Environ(), actAs+"=split "+ratio)
		if _, err := c.StdinPipe(); err != nil { // the program ends when its input does
			t.Fatal(err)
		}
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var r, b float64
		if _, err := fmt.Sscan(string(out), &r, &b); err != nil {
			t.Fatalf("%v: %q", err, out)
		}
		return filepath.Join(dir, name), r / (r + b)
	}
	base, was := record("70:30", "base.jfr")
	new, is := record("40:60", "new.pb.gz") // another format
	if math.Abs(was-0.7) > 0.1 || math.Abs(is-0.4) > 0.1 {
		t.Fatalf("the program splits its time %.3f and %.3f", was, is)
	}
	d, rows := diffOf(t, base, new, "--focus", `\.spin(Red|Blue)$`)
	for name, want := range map[string]float64{"spinRed": is - was, "spinBlue": was - is} {
		m, ok := rows["github.com/candid-profiler/candid/cmd/candid."+name]
		n := float64(min(m.Total.Base.Samples, m.Total.New.Samples))
		if !ok || n < 100 {
			t.Fatalf("%s: %+v of %+v, %+v", name, m, d.Base, d.New)
		}
		// Five standard deviations of both, and the share of interrupts in between.
		if bound := 0.01 + 5*math.Sqrt(2*0.25/float64(min(d.Base.Shown.Samples, d.New.Shown.Samples))); math.Abs(m.Total.Change-want) > bound {
			t.Errorf("%s changed by %.3f, in truth by %.3f", name, m.Total.Change, want)
		}
		if m.Total.WithinChance {
			t.Errorf("%s is within chance: %+v", name, m.Total)
		}
	}
	// The gate is meant for scripts.
	candid(t, "diff", base, new, "--fail-above", "15", "-o", filepath.Join(dir, "x.txt")).refused(t, exitFailed, "spinBlue +", "15 points")
	ok(t, "diff", base, new, "--fail-above", "50")
	ok(t, "diff", base, base, "--fail-above", "0")
}

func TestDiff(t *testing.T) {
	all := profiletest.Java()
	base := written(t, "base.jfr", profile.Apply(all, profile.Filter{Ignore: regexp.MustCompile("Json")}))
	new := written(t, "new.jfr", profile.Apply(all, profile.Filter{Ignore: regexp.MustCompile("^com.example.shop.Rules")}))

	d, rows := diffOf(t, base, new, "--tree")
	if d.Schema != report.DiffSchema || len(d.Calls) < 20 || d.Calls[0].Parent != -1 || d.Callers != nil {
		t.Errorf("schema %s, %d calls", d.Schema, len(d.Calls))
	}
	if gone := rows["com.example.shop.Rules.evaluate"]; gone.Status != "gone" || gone.Self.Change >= 0 || gone.Self.WithinChance {
		t.Errorf("%+v", gone)
	}
	if fresh := rows["com.example.shop.Json.write"]; fresh.Status != "new" || fresh.Total.Change <= 0 {
		t.Errorf("%+v", fresh)
	}
	// Both sides agree with a report of each file.
	for i, file := range []string{base, new} {
		var r report.Report
		if err := json.Unmarshal([]byte(ok(t, "report", file, "--json").out), &r); err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Methods {
			row := rows[m.Name]
			self, total := []report.Count{row.Self.Base, row.Self.New}[i], []report.Count{row.Total.Base, row.Total.New}[i]
			if self != m.Self || total != m.Total {
				t.Errorf("%s: self %+v, total %+v, the report has %+v, %+v", m.Name, self, total, m.Self, m.Total)
			}
		}
	}

	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"base.jfr", "SELF CHANGE", "(gone)", "(new)", "Rules.evaluate", "stacks lack their outer part"}},
		{[]string{"--tree"}, []string{"CALL TREE", "without a change of 0.5 points"}},
		{[]string{"--view", "tree", "--min", "0"}, []string{"[broken:", "[truncated:"}},
		{[]string{"--callers", "Rules"}, []string{"CALLERS OF Rules", "← com.example.shop.Worker.loop"}},
		{[]string{"--by", "total", "--top", "3"}, []string{"methods more, of which none changed by more than"}},
		{[]string{"--thread", "^http-worker-2"}, []string{"pass the filter"}},
		{[]string{"--normalize", "time"}, []string{"ms/s", "By the second"}},
		{[]string{"--normalize", "none"}, []string{"1.50s", "as they are"}},
	} {
		got := ok(t, append([]string{"diff", base, new}, c.args...)...)
		for _, w := range c.want {
			if !strings.Contains(got.out, w) {
				t.Errorf("diff %v: %q is missing in:\n%s", c.args, w, got.out)
			}
		}
		if got.err != "" || strings.Contains(got.out, "\x1b") {
			t.Errorf("diff %v: colours in a file, or errors: %q", c.args, got.err)
		}
	}
	// A tree shows as many lines as requested, with those above them, and how much is left out.
	lines := strings.Split(ok(t, "diff", base, new, "--tree", "--min", "0", "-n", "7").out, "\n")
	rows7, more := 0, 0
	for _, l := range lines[slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "CALL TREE") })+1:] {
		switch {
		case l == "": // the rest explains
		case strings.Contains(l, " more)"):
			more++
		case strings.Contains(l, "%") && !strings.Contains(l, "are shown"):
			rows7++
		}
	}
	if rows7 != 7 || more == 0 || !strings.Contains(strings.Join(lines, "\n"), "the 7 that changed most are shown (--min, -n)") {
		t.Errorf("%d rows, %d lines of what is left out in\n%s", rows7, more, strings.Join(lines, "\n"))
	}
	// An event can be selected by all of its names here too.
	renamed := func(file string, filter profile.Filter) string {
		p := profile.Apply(all, filter)
		p.Events = []profile.Event{{Name: "context-switches", Kind: profile.EventCounter, Unit: "count"}}
		return written(t, file, p)
	}
	switches := []string{"diff", renamed("old.jfr", profile.Filter{}), renamed("later.jfr", profile.Filter{Ignore: regexp.MustCompile("Json")})}
	for _, name := range []string{"cs", "context-switches"} {
		if got := ok(t, append(switches, "-e", name)...); !strings.Contains(got.out, "of context-switches") {
			t.Errorf("-e %s says\n%s", name, got.out)
		}
	}
	for name, want := range map[string]string{"d.txt": "SELF CHANGE", "d.folded": "com.example.shop.Rules.evaluate ", "d.json": report.DiffSchema} {
		out := filepath.Join(t.TempDir(), name)
		ok(t, "diff", base, new, "-o", out)
		if b, err := os.ReadFile(out); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v\n%s", name, err, b)
		}
		candid(t, "diff", base, new, "-o", out).refused(t, exitFailed, out, "--force")
	}

	server := written(t, "server.pb.gz", profile.Only(profiletest.Server(500, 2000, 10), 1))
	for _, c := range []struct {
		code int
		args []string
		want []string
	}{
		{exitUsage, []string{base}, []string{"two files"}},
		{exitUsage, []string{base, server}, []string{"cannot be compared", "alloc", "--event"}},
		{exitUsage, []string{base, new, "--event", "wall"}, []string{"wall", "cpu"}},
		{exitUsage, []string{base, new, "--normalize", "best"}, []string{"best", "total"}},
		{exitUsage, []string{base, new, "--by", "name"}, []string{"--by"}},
		{exitUsage, []string{base, new, "--view", "threads"}, []string{"threads", "tree"}},
		{exitUsage, []string{base, new, "--callers", "("}, []string{"--callers"}},
		{exitUsage, []string{base, new, "--fail-above", "-1"}, []string{"--fail-above"}},
		{exitUsage, []string{base, new, "--fail-above", "1", "--normalize", "none"}, []string{"--fail-above", "total"}},
		{exitUsage, []string{base, new, "--min", "NaN"}, []string{"--min"}},
		{exitUsage, []string{base, new, "--format", "html"}, []string{"--format", "-o FILE"}},
		{exitUsage, []string{"-", "-"}, []string{"standard input"}},
		{exitUsage, []string{base, written(t, "few.folded", all), "--normalize", "time"}, []string{"how long", "--normalize total"}},
		{exitFailed, []string{base, t.TempDir()}, []string{"it is a directory"}},
		{exitFailed, []string{base, "/etc/passwd"}, []string{"line 1: not a collapsed stack", "candid reads jfr"}},
		{exitUsage, []string{base, new, "-o", "x.pb.gz"}, []string{"pprof", "html"}},
		{exitUsage, []string{base, new, "--focus", "["}, []string{"--focus"}},
		{exitFailed, []string{base, "/nonexistent.jfr"}, []string{"/nonexistent.jfr"}},
		{exitNoSamples, []string{base, new, "--thread", "nobody"}, []string{"base.jfr", "nobody"}},
		{exitNoSamples, []string{base, new, "--focus", "Json"}, []string{"base.jfr", "Json"}},
		{exitNoSamples, []string{base, written(t, "empty.jfr", profile.Apply(all, profile.Filter{Focus: regexp.MustCompile("^$")}))}, []string{"empty.jfr", "no samples"}},
	} {
		candid(t, append([]string{"diff"}, c.args...)...).refused(t, c.code, c.want...)
	}
}
