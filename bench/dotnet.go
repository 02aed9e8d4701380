package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// dotnetChain are the methods of the chain, outermost first, as they call each other; see
// internal/runtimes/dotnet/testdata/Chain.cs.
var dotnetChain = []string{"Run", "ByStatic", "ByVirtual", "ByInterface", "ByGenericType", "ByGenericMethod", "ByDelegate", "Leaf"}

// dotnetModes are settings of the runtime that make it compile in different ways.
var dotnetModes = []struct {
	name string
	env  []string
}{
	{"default settings", nil},
	{"without tiers", []string{"DOTNET_TieredCompilation=0"}},
	{"without ReadyToRun", []string{"DOTNET_ReadyToRun=0"}},
	{"Tier-0 only", []string{"DOTNET_TC_CallCounting=0", "DOTNET_TC_OnStackReplacement=0"}},
}

// dotnet records the chain of .NET methods that are never inlined, in each configuration: which stacks have
// every caller, by candid and by perf with a perf map, and what candid takes for it.
func (b *bench) dotnet() {
	for _, major := range []int{8, 9, 10} {
		assembly, err := b.csharp(major, filepath.Join("internal", "runtimes", "dotnet", "testdata", "Chain.cs"))
		for _, m := range dotnetModes {
			what := fmt.Sprintf(".NET %d, %s", major, m.name)
			if err != nil {
				b.add(row{Section: "dotnet", What: what, Failed: err.Error()})
				continue
			}
			b.dotnetByCandid(what, major, assembly, m.env)
			b.dotnetByPerf(what, major, assembly, m.env)
		}
	}
}

func (b *bench) dotnetByCandid(what string, major int, assembly string, env []string) {
	rows := []row{
		{What: "every caller right, " + what, Unit: "%", Bar: "≥ 99.9 %"},
		{What: "attach to first walked sample, " + what, Unit: "ms", Bar: "≤ 150 ms"},
		{What: "candid's own CPU per sample, " + what, Unit: "µs", Bar: "≤ 15 µs"},
		{What: "what the BPF program takes of the target per sample, " + what, Unit: "µs"},
	}
	err := func() error {
		p, err := start("ready", b.dotnetCommand(major, assembly, env)...)
		if err != nil {
			return err
		}
		defer p.stop()
		var first []float64
		for range 5 {
			rec, err := b.attachTo(p.pid(), 300*time.Millisecond, "-F", "1000")
			if err != nil {
				return err
			}
			first = append(first, rec.summary.FirstWalked/1e6)
		}
		rows[1].Value, rows[1].Min, rows[1].Max = spread(first)
		rows[1].Runs = len(first)
		rec, err := b.attachTo(p.pid(), time.Duration(b.seconds(10))*time.Second, "-F", "1000")
		if err != nil {
			return err
		}
		n := rec.summary.All.Samples
		if n == 0 {
			return fmt.Errorf("no samples")
		}
		rows[2].Value, rows[3].Value = rec.summary.OwnCPU/n/1e3, rec.summary.TargetCost/n/1e3
		rows[2].Note = fmt.Sprintf("of %d s, attaching included", b.seconds(10))
		var c chainCount
		for _, s := range rec.profile.Samples {
			c.add(profiledChain(rec.profile, s.Node), s.End == walk.EndComplete)
		}
		rows[0].Value, rows[0].Note, err = c.result()
		return err
	}()
	for _, r := range rows {
		r.Section = "dotnet"
		if err != nil {
			r.Failed = err.Error()
		}
		b.add(r)
	}
}

// dotnetByPerf does the same by perf, with the map of methods that the runtime writes for it if it is told
// to when it starts. perf does not look into the map for code that is mapped from a file, as the runtime's
// is unless it is told to map it once.
func (b *bench) dotnetByPerf(what string, major int, assembly string, env []string) {
	r := row{Section: "dotnet", What: "the same by perf with a perf map, " + what, Unit: "%"}
	err := func() error {
		if _, err := exec.LookPath("perf"); err != nil {
			return fmt.Errorf("perf is not installed")
		}
		p, err := start("ready", b.dotnetCommand(major, assembly, append([]string{"DOTNET_PerfMapEnabled=1", "DOTNET_EnableWriteXorExecute=0"}, env...))...)
		if err != nil {
			return err
		}
		defer p.stop()
		defer os.Remove(fmt.Sprintf("/tmp/perf-%d.map", p.pid()))
		defer os.Remove(fmt.Sprintf("/tmp/perfinfo-%d.map", p.pid()))
		data := filepath.Join(b.work, "perf.data")
		defer os.Remove(data)
		if out, err := exec.Command("perf", "record", "-q", "-e", "cpu-clock", "-F", "1000", "-g", "-o", data, "-p", fmt.Sprint(p.pid()), "--", "sleep", fmt.Sprint(b.seconds(10))).CombinedOutput(); err != nil {
			return fmt.Errorf("perf record: %w: %s", err, firstLine(out))
		}
		out, err := exec.Command("perf", "script", "-i", data, "-F", "ip,sym").Output()
		if err != nil {
			return fmt.Errorf("perf script: %w", err)
		}
		var c chainCount
		for stack := range bytes.SplitSeq(out, []byte("\n\n")) {
			if len(bytes.TrimSpace(stack)) == 0 {
				continue
			}
			var methods []string
			for line := range strings.Lines(string(stack)) {
				// An optimized frame that took over in a loop has the frame that it took over from below it.
				if m := chainMethod(line); m != "" && (len(methods) == 0 || methods[len(methods)-1] != m) {
					methods = append(methods, m)
				}
			}
			c.add(methods, true)
		}
		r.Value, r.Note, err = c.result()
		return err
	}()
	if err != nil {
		r.Failed = err.Error()
	}
	b.add(r)
}

// profiledChain returns the methods of the chain on a stack, innermost first.
func profiledChain(p *profile.Profile, node uint32) (methods []string) {
	for ; node != profile.RootNode; node = p.Nodes[node].Parent {
		if f := &p.Frames[p.Nodes[node].Frame]; profile.ManagedFrame(f.Kind) {
			if m := chainMethod(p.Funcs[f.Func].Name); m != "" {
				methods = append(methods, m)
			}
		}
	}
	return methods
}

// chainMethod returns the method of the chain that a name is of, "" for none: "Program.Leaf" by candid,
// "int64 [Chain] Program::Leaf(int32)[Tier0]" in a perf map.
func chainMethod(name string) string {
	for _, m := range dotnetChain {
		for _, separator := range []string{".", "::"} {
			before, after, ok := strings.Cut(name, separator+m)
			if !ok || after != "" && strings.ContainsRune("abcdefghijklmnopqrstuvwxyz", rune(after[0])) {
				continue
			}
			if m != dotnetChain[0] || strings.HasSuffix(before, "Program") {
				return m
			}
		}
	}
	return ""
}

// chainCount counts stacks with methods of the chain.
type chainCount struct {
	right, all, none int
	wrong            map[string]int
}

// add counts a stack by its methods of the chain, innermost first.
func (c *chainCount) add(methods []string, complete bool) {
	if len(methods) == 0 {
		c.none++
		return
	}
	c.all++
	want := slices.Clone(dotnetChain[:slices.Index(dotnetChain, methods[0])+1])
	slices.Reverse(want)
	if complete && slices.Equal(methods, want) {
		c.right++
		return
	}
	if c.wrong == nil {
		c.wrong = map[string]int{}
	}
	c.wrong[strings.Join(methods, " ")]++
}

// result returns the share of stacks with every caller, in percent.
func (c *chainCount) result() (float64, string, error) {
	if c.all == 0 {
		return 0, "", fmt.Errorf("no sample of %d shows the chain", c.none)
	}
	note := fmt.Sprintf("%d of %d samples; %d without the chain", c.right, c.all, c.none)
	most, n := "", 0
	for w, k := range c.wrong {
		if k > n || k == n && w < most {
			most, n = w, k
		}
	}
	if n > 0 {
		note += fmt.Sprintf("; most frequent fault: %s (%d)", most, n)
	}
	return 100 * float64(c.right) / float64(c.all), note, nil
}

// dotnetCommand returns the command line of an assembly on a major version of .NET.
func (b *bench) dotnetCommand(major int, assembly string, env []string) []string {
	args := append([]string{"env"}, env...)
	if major == 9 {
		return append(append(args, b.dotnetHost()...), assembly)
	}
	return append(args, filepath.Join(b.cache, "dotnet", fmt.Sprint(major), "host"), assembly)
}

// dotnetHost returns the command line of the installed runtime, without the assembly.
func (b *bench) dotnetHost() []string {
	dir := filepath.Join(b.cache, "dotnet", "9")
	found, _ := filepath.Glob(filepath.Join(dir, "shared", "Microsoft.NETCore.App", "9.*")) // the pattern is right
	if len(found) == 0 {
		return []string{filepath.Join(dir, "dotnet"), "exec"}
	}
	return []string{filepath.Join(dir, "dotnet"), "exec", "--fx-version", filepath.Base(found[0])}
}

// csharp compiles a C# program for a major version of .NET and returns the path of the assembly.
func (b *bench) csharp(major int, source string) (string, error) {
	dir := filepath.Join(b.cache, "dotnet")
	refs, define := "ref", ""
	if major >= 10 {
		refs, define = "ref10", "-define:TRIMMED" // its framework lacks what nobody has used
	}
	references, err := filepath.Glob(filepath.Join(dir, refs, "*.dll"))
	if err != nil || len(references) == 0 {
		return "", fmt.Errorf("no .NET: scripts/get-dotnet.sh")
	}
	name := strings.TrimSuffix(filepath.Base(source), ".cs")
	to := filepath.Join(b.work, fmt.Sprintf("dotnet%d", major))
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	assembly := filepath.Join(to, name+".dll")
	args := append(b.dotnetHost(), filepath.Join(dir, "csc", "csc.dll"), "-nologo", "-noconfig", "-nostdlib", "-optimize+", "-unsafe+", "-langversion:8", "-debug:portable", "-out:"+assembly)
	for _, r := range references {
		args = append(args, "-r:"+r)
	}
	if define != "" {
		args = append(args, define)
	}
	if out, err := exec.Command(args[0], append(args[1:], source)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile %s: %w: %s", source, err, firstLine(out))
	}
	const config = `{"runtimeOptions":{"framework":{"name":"Microsoft.NETCore.App","version":"3.1.0"},"rollForward":"Major","configProperties":{"System.Globalization.Invariant":true}}}`
	return assembly, os.WriteFile(filepath.Join(to, name+".runtimeconfig.json"), []byte(config), 0o600)
}
