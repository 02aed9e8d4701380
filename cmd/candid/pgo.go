package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/gctune"
	"github.com/candid-profiler/candid/internal/pgo"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/spill"
)

// fewSamples is how many samples in the program are needed before a profile of it helps much.
const fewSamples = 5000

type pgoFlags struct {
	out     outputFlags
	binary  string
	weights []string
	event   string
	anyFile bool
}

func newPGO() *cobra.Command {
	var f pgoFlags
	cmd := &cobra.Command{
		Use:   "pgo FILE... -o OUT",
		Short: "Make a profile by which a compiler makes the program faster",
		Long: `Make, from recordings of a running program, the file by which its compiler or linker
makes it faster (profile-guided optimisation). Nothing was built into the program for
it; it is best recorded where it does its real work.

By the extension of OUT, or --format NAME:
` + pgoHelp() + `
The recording holds addresses. Everything else is read from the program's own file, which
has to be the very one that ran: it is compared by build id. It is looked for where it
was; --binary says another place. Programs for clang, rustc and gcc need debugging
information (-g; for clang also -fdebug-info-for-profiling and
-funique-internal-linkage-names); Go programs may be stripped.

Several recordings are added up. Each sample counts the same, whichever recording it is
from; --weight 3,1 makes those of the first count three times as much.

What is not in a recording of time: how often a branch was taken. So how often a block ran
is its samples divided by its instructions; but which functions a call through a pointer
or an interface calls is on the stacks, and that is what helps most. A recording that was
made with 'record --branches' has branches too, and blocks' counts are from these. Below
some 5,000 samples in the program little is gained: a line says so.

Exit codes: 0 written, 1 failed, 2 wrong usage, 5 no samples in the program.`,
		Example: `  candid pgo app.jfr -o default.pgo              then: go build   (in the main package)
  candid pgo app.jfr -o app.prof                 then: clang -O2 -g -fprofile-sample-use=app.prof
  candid pgo app.jfr -o app.gcov                 then: gcc -O2 -fauto-profile=app.gcov
  candid pgo app.jfr -o app.order                then: clang -fuse-ld=lld -ffunction-sections
                                                       -Wl,--symbol-ordering-file=app.order
  candid pgo mon.jfr tue.jfr --weight 2,1 -o app.prof
  candid pgo app.jfr --binary build/app.debug -o app.prof`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("give the recordings: candid pgo FILE... -o OUT")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runPGO(cmd, &f, args) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.out.path, "output", "o", "", "`FILE` to write; '-' is standard output")
	fl.StringVar(&f.out.format, "format", "", "`NAME` of what to write, if the extension does not say it")
	fl.StringVarP(&f.binary, "binary", "b", "", "the program's or library's own `FILE` (default: where it was when it was recorded)")
	fl.StringSliceVar(&f.weights, "weight", nil, "how much each recording's samples count: a `LIST` of numbers")
	fl.StringVar(&f.event, "event", "", "the `NAME` of the event to use (default the first that has samples)")
	fl.BoolVar(&f.anyFile, "ignore-build-id", false, "use the file even if it is not the one that was recorded")
	fl.BoolVar(&f.out.force, "force", false, "overwrite the file if it is there")
	return cmd
}

// pgoFormat is a kind of file that candid pgo writes.
type pgoFormat struct {
	name string
	exts []string
	text string
}

var pgoFormats = []pgoFormat{
	{"go", []string{".pgo"}, "go build -pgo, or default.pgo beside main.go"},
	{"llvm", []string{".prof", ".profdata"}, "clang and rustc: LLVM's sample profile, binary"},
	{"llvm-text", []string{".proftext"}, "the same as text"},
	{"gcc", []string{".gcov", ".afdo"}, "gcc -fauto-profile"},
	{"order", []string{".order"}, "functions' order for lld and mold (--symbol-ordering-file)"},
	{"section-order", []string{".sections"}, "the same for gold (--section-ordering-file)"},
	{"bolt", []string{".fdata"}, "llvm-bolt -data (no branches: blocks' counts only)"},
	{"bolt-branches", []string{".preagg"}, "perf2bolt -pa: branches of record --branches"},
	{"brstack", []string{".brstack"}, "the same as perf script prints it: llvm-profgen"},
}

func pgoHelp() string {
	var b strings.Builder
	for _, f := range pgoFormats {
		fmt.Fprintf(&b, "  %-14s %-16s %s\n", f.name, strings.Join(f.exts, " "), f.text)
	}
	return b.String()
}

func (f *pgoFlags) choose() (string, error) {
	if f.out.path == "" {
		return "", usage("give -o OUT: default.pgo for Go, OUT.prof for clang and rustc, OUT.gcov for gcc, OUT.order for linkers")
	}
	for _, k := range pgoFormats {
		if f.out.format == k.name || f.out.format == "" && slices.Contains(k.exts, strings.ToLower(filepath.Ext(f.out.path))) {
			return k.name, nil
		}
	}
	var names []string
	for _, k := range pgoFormats {
		names = append(names, k.name)
	}
	if f.out.format != "" {
		return "", usage("--format %q: there are %s", f.out.format, strings.Join(names, ", "))
	}
	return "", usage("what is %s for? Its extension does not say it: give --format, one of %s", f.out.path, strings.Join(names, ", "))
}

// scales returns the weight of each recording's samples.
func (f *pgoFlags) scales(n int) ([]float64, error) {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	if f.weights == nil {
		return out, nil
	}
	if len(f.weights) != n {
		return nil, usage("--weight has %d numbers for %d recordings", len(f.weights), n)
	}
	for i, w := range f.weights {
		v, err := strconv.ParseFloat(w, 64)
		if err != nil || !(v > 0 && v <= 1e6) || math.IsNaN(v) {
			return nil, usage("--weight %q is no number above 0 and up to a million", w)
		}
		out[i] = v
	}
	return out, nil
}

func runPGO(cmd *cobra.Command, f *pgoFlags, files []string) error {
	kind, err := f.choose()
	if err != nil {
		return err
	}
	scales, err := f.scales(len(files))
	if err != nil {
		return err
	}
	if f.out.path != "-" && !f.out.force {
		if _, err := os.Lstat(f.out.path); err == nil {
			return failed(fmt.Errorf("%s exists; --force overwrites it", f.out.path))
		}
	}
	defer gctune.Bound()()
	recordings := make([]pgo.Recording, len(files))
	over := make([]spill.File, len(files))
	samples := pgo.NewSamples()
	for i, file := range files {
		defer over[i].Close()
		p, _, err := (format.Reading{Keep: profile.KeepSums, Overflow: &over[i]}).Read(file)
		if err != nil {
			return failed(err)
		}
		if len(p.Events) == 0 {
			return &codedError{exitNoSamples, fmt.Errorf("%s has no samples", file)}
		}
		event := p.FirstEvent()
		if f.event != "" {
			var ok bool
			if event, ok = p.EventByName(f.event); !ok {
				return usage("--event %q: %s has %s", f.event, file, p.EventNames())
			}
		}
		recordings[i] = pgo.Recording{Profile: p, Event: event, Scale: scales[i]}
		samples.Add(p, event, scales[i])
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(cmd.ErrOrStderr(), "candid: "+format+"\n", args...)
	}
	m, b, err := f.program(samples, kind, say)
	if err != nil {
		return failed(err)
	}
	if b != nil {
		defer b.Close()
	}
	if m == nil || m.Count == 0 {
		return &codedError{exitNoSamples, fmt.Errorf("no sample of %s is in machine code of a file: nothing to make a profile of", strings.Join(files, ", "))}
	}
	var made bytes.Buffer
	lines, err := writePGO(&made, kind, recordings, samples, m, b)
	if err != nil {
		return failed(err)
	}
	for _, r := range recordings {
		if err := r.Profile.Err(); err != nil {
			return failed(err)
		}
	}
	out := output{f.out.path, kind, &f.out}
	name, err := out.put(func(w io.Writer) error {
		_, err := w.Write(made.Bytes())
		return err
	})
	if err != nil {
		return failed(err)
	}
	for _, l := range lines {
		say("%s", l)
	}
	if m.Count < fewSamples {
		say("only %d samples: below some %d there is little to gain; record longer or at a higher rate (-F 1000)", m.Count, fewSamples)
	}
	out.tell(cmd.ErrOrStderr(), name)
	return nil
}

// program returns what the recordings have of the program, and its file. Go's profile can be written
// without the file, if it is not there.
func (f *pgoFlags) program(samples *pgo.Samples, kind string, say func(string, ...any)) (*pgo.Module, *pgo.Binary, error) {
	m := samples.Largest()
	var b *pgo.Binary
	var err error
	if f.binary != "" {
		if b, err = pgo.OpenBinary(f.binary); err != nil {
			return nil, nil, err
		}
		m = samples.For(b)
		if m == nil {
			b.Close()
			return nil, nil, &codedError{exitNoSamples, fmt.Errorf("no sample is in %s; the recordings have samples in %s", f.binary, samples.Names(8))}
		}
	} else if m != nil {
		for _, path := range m.Files() {
			if b, err = pgo.OpenBinary(path); err == nil {
				break
			}
		}
		switch {
		case b == nil && kind == "go" && errors.Is(err, pgo.ErrNotELF):
			say("%v: names are used as they were recorded", err)
			return m, nil, nil
		case b == nil && kind == "go":
			say("%s is not where it was: names are used as they were recorded", m.Name)
			return m, nil, nil
		case b == nil && len(m.Files()) == 0:
			return nil, nil, fmt.Errorf("the recordings do not say where %s is (they were made by another tool or an older candid): give --binary FILE", m.Name)
		case b == nil:
			return nil, nil, fmt.Errorf("%w; give --binary FILE", err)
		}
	}
	if m == nil || b == nil {
		return m, b, nil
	}
	byName, err := b.Check(m)
	switch {
	case errors.Is(err, pgo.ErrNotThis) && f.anyFile:
		say("%v (ignored)", err)
	case err != nil && f.binary == "" && kind == "go":
		b.Close()
		say("%v: names are used as they were recorded", err)
		return m, nil, nil
	case err != nil:
		b.Close()
		return nil, nil, fmt.Errorf("%w; give the file that ran with --binary, or --ignore-build-id", err)
	case byName:
		say("no build id to compare: %s has the functions of the recording at their addresses", b.Path)
	}
	b.Name = m.Name
	return m, b, nil
}

// writePGO writes the file and returns lines that say what it was made of.
func writePGO(w io.Writer, kind string, recordings []pgo.Recording, samples *pgo.Samples, m *pgo.Module, b *pgo.Binary) ([]string, error) {
	share := func(part, all float64) string {
		if all <= 0 {
			return "0.0 %"
		}
		return fmt.Sprintf("%.1f %%", 100*part/all)
	}
	used := fmt.Sprintf("%d of %d samples are in %s", m.Count, samples.Count, m.Name)
	switch kind {
	case "go":
		r, err := pgo.WriteGo(w, recordings, b)
		if err == nil && r.NoStart == r.Samples {
			err = fmt.Errorf("no function has the line of its declaration, without which Go uses no profile: %s is no Go program, is older than Go 1.20, or the recording was made by another tool (give --binary FILE)", m.Name)
		}
		return []string{fmt.Sprintf("%s; %s of the stacks' weight has no line of a declaration", used, share(float64(r.NoStart), float64(r.Samples)))}, err
	case "order", "section-order":
		n, err := pgo.WriteOrder(w, b, m, kind == "section-order")
		return []string{fmt.Sprintf("%s; %d functions", used, n)}, err
	case "bolt-branches", "brstack":
		var n float64
		var err error
		if kind == "brstack" {
			n, err = pgo.WriteBrStack(w, m, b)
		} else {
			n, err = pgo.WritePreaggregated(w, m)
		}
		if errors.Is(err, pgo.ErrNoBranches) {
			err = fmt.Errorf("%w in %s: record it with --branches", err, m.Name)
		}
		return []string{fmt.Sprintf("%s; %.0f branches", used, n)}, err
	case "bolt":
		n, err := pgo.WriteBOLT(w, b, m)
		return []string{fmt.Sprintf("%s; %s in functions that a symbol names", used, share(n, m.Weight))}, err
	}
	if !b.HasLines() {
		return nil, fmt.Errorf("%s has no line information: compile it with -g (and for clang -fdebug-info-for-profiling), or give the file that has it with --binary", b.Path)
	}
	if b.Machine == pgo.Other {
		return nil, fmt.Errorf("%s is for a processor whose instructions candid does not read: only x86-64 and arm64", b.Path)
	}
	t := pgo.BuildTree(b, m, kind != "gcc")
	r := &t.Report
	lines := []string{fmt.Sprintf("%s; %s in no named function, %s without a line; %d functions, callees of %d calls through pointers",
		used, share(r.NoSymbol, r.Weight), share(r.NoLine, r.Weight), r.Functions, r.Targets)}
	if r.Edges > 0 {
		lines = append(lines, fmt.Sprintf("how often blocks ran is from %.0f branches", r.Edges))
	}
	switch kind {
	case "gcc":
		return lines, t.WriteGCov(w)
	case "llvm-text":
		return lines, t.WriteLLVMText(w)
	}
	return lines, t.WriteLLVMBinary(w)
}
