package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// pgoSource returns the path of a program in workloads/pgo.
func pgoSource(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../workloads/pgo", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// tool runs a tool in a directory and returns what it prints.
func tool(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(fixture.Tool(t, name), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0", "RUSTC_BOOTSTRAP=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// recordedProgram records a program that ends by itself, and returns the recording.
func recordedProgram(t *testing.T, dir string, program ...string) string {
	t.Helper()
	file := filepath.Join(dir, filepath.Base(program[0])+".jfr")
	ok(t, append([]string{"record", "-q", "--force", "-F", "1000", "-o", file, "--"}, program...)...)
	return file
}

// goEdges returns the weights of the calls in a profile, as Go's own reader of profiles has them, by
// caller, callee and line.
func goEdges(t *testing.T, dir, file string) map[string]int {
	t.Helper()
	out := filepath.Join(dir, filepath.Base(file)+".edges")
	tool(t, dir, "go", "tool", "preprofile", "-i", file, "-o", out)
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	edges := map[string]int{}
	lines := strings.Split(string(b), "\n")
	for i := 1; i+2 < len(lines); i += 3 {
		line, weight, _ := strings.Cut(lines[i+2], " ")
		n, err := strconv.Atoi(weight)
		if err != nil {
			t.Fatalf("%s: %q", out, lines[i+2])
		}
		edges[fmt.Sprintf("%s:%s %s", lines[i], line, lines[i+1])] = n
	}
	return edges
}

// TestPGOGo records a stripped Go program that profiles itself at the same time. Go's compiler has
// to make of candid's profile what it makes of the program's own: at least the same calls are made
// direct, and the calls that make up its weight are there.
func TestPGOGo(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "poly")
	src := pgoSource(t, "poly")
	tool(t, src, "go", "build", "-ldflags=-s -w", "-o", program, ".")
	own := filepath.Join(dir, "own.pprof")
	jfr := recordedProgram(t, dir, program, "2000", own)
	file := filepath.Join(dir, "default.pgo")
	r := ok(t, "pgo", jfr, "-o", file)
	// Some of the runtime's assembly has no declaration.
	noLine := regexp.MustCompile(`(\d+\.\d) % of the stacks' weight has no line`).FindStringSubmatch(r.err)
	if !strings.Contains(r.err, "samples are in poly") || noLine == nil || len(noLine[1]) > 3 || noLine[1] > "0.5" {
		t.Errorf("candid pgo says %s", r.err)
	}

	theirs, ours := goEdges(t, dir, own), goEdges(t, dir, file)
	all, have := 0, 0
	for e, w := range theirs {
		// Signals, by which it profiles itself, are no calls of the program's.
		if !strings.HasPrefix(e, "main.") || strings.Contains(e, "asyncPreempt") {
			continue
		}
		all += w
		if ours[e] > 0 {
			have += w
		} else {
			t.Logf("not in candid's profile: %s (%d)", e, w)
		}
	}
	if all < 50 {
		t.Fatalf("the program's own profile has calls of %d samples only: %v", all, theirs)
	}
	if have*100 < all*95 {
		t.Errorf("of the weight of the calls in the program's own profile %d of %d are in candid's", have, all)
	}

	// Only the program's own package is compiled: the runtime's would take much longer.
	config := filepath.Join(dir, "importcfg")
	list := tool(t, src, "go", "list", "-export", "-deps", "-f", "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}", ".")
	if err := os.WriteFile(config, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	direct := func(edges string) []string {
		out := tool(t, src, "go", "tool", "compile", "-m", "-pgoprofile="+edges, "-p=main", "-importcfg="+config, "-o="+os.DevNull, "main.go")
		return regexp.MustCompile(`main.go:.*PGO devirtualizing.*`).FindAllString(out, -1)
	}
	a, b := direct(own+".edges"), direct(file+".edges")
	for _, want := range append(a, "to (*add).apply", "to (*summer).visit") {
		if !strings.Contains(strings.Join(b, "\n"), want) {
			t.Errorf("with candid's profile the compiler does not say %q, only:\n%s", want, strings.Join(b, "\n"))
		}
	}
}

// TestPGOGCC has gcc inline what a profile of candid's says is called through pointers.
func TestPGOGCC(t *testing.T) {
	dir := t.TempDir()
	src, program := pgoSource(t, "poly.cc"), filepath.Join(dir, "poly")
	tool(t, dir, "g++", "-O2", "-g", src, "-o", program)
	jfr := recordedProgram(t, dir, program, "5000")
	file := filepath.Join(dir, "poly.gcov")
	r := ok(t, "pgo", jfr, "-o", file)
	if !strings.Contains(r.err, "callees of 2 calls through pointers") {
		t.Errorf("candid pgo says %s", r.err)
	}
	out := tool(t, dir, "g++", "-O2", "-g", "-Wall", "-Werror", "-fauto-profile="+file, "-fopt-info-inline-optimized", src, "-o", program+".pgo")
	for _, want := range []string{`Inlined .*Add::apply\(.* into uint64_t run\(`, `Inlined .* half\(.* into uint64_t map\(`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("gcc does not say %s, but:\n%s", want, out)
		}
	}

	r = ok(t, "annotate", jfr, "run")
	for _, want := range []string{`(?m)^poly.cc:\d+  x = o->apply\(x\);$`, `(?m)1\.00 .* callq? .*→ Add::apply [5-9]\d %`, `↑`} {
		if !regexp.MustCompile(want).MatchString(r.out) {
			t.Errorf("candid annotate does not show %s, but:\n%s", want, r.out)
		}
	}
	if r := candid(t, "annotate", jfr, "nowhere"); r.code != exitNoSamples || !strings.Contains(r.err, `no function called "nowhere"`) {
		t.Errorf("of a function that is not there candid says, with exit code %d: %s", r.code, r.err)
	}

	// A linker puts the functions in the order of the profile.
	order := filepath.Join(dir, "poly.sections")
	ok(t, "pgo", jfr, "-o", order)
	b, err := os.ReadFile(order)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(strings.ReplaceAll(string(b), ".text.", ""))
	if len(names) < 5 {
		t.Fatalf("the order has %q", b)
	}
	if _, err := exec.LookPath("ld.gold"); err == nil {
		tool(t, dir, "g++", "-O2", "-g", "-ffunction-sections", "-fuse-ld=gold", "-Wl,--section-ordering-file="+order, src, "-o", program+".ordered")
		checkOrder(t, tool(t, dir, "nm", "-n", program+".ordered"), names)
	}

	// The profile of another program is refused, and one of a program without lines.
	tool(t, dir, "g++", "-O1", "-g", src, "-o", program)
	if r := candid(t, "pgo", jfr, "-o", filepath.Join(dir, "other.gcov")); r.code != exitFailed || !strings.Contains(r.err, "build id") {
		t.Errorf("for another file candid says, with exit code %d: %s", r.code, r.err)
	}
	tool(t, dir, "g++", "-O2", src, "-o", program)
	if r := candid(t, "pgo", jfr, "-o", filepath.Join(dir, "bare.gcov"), "--ignore-build-id"); r.code != exitFailed || !strings.Contains(r.err, "-g") {
		t.Errorf("for a file without lines candid says, with exit code %d: %s", r.code, r.err)
	}
}

// checkOrder checks that functions lie in an order, by nm's output.
func checkOrder(t *testing.T, nm string, names []string) {
	t.Helper()
	last, found := "", 0
	at := 0
	for _, name := range names {
		m := regexp.MustCompile(`(?m)^([0-9a-f]+) [tTwW] ` + regexp.QuoteMeta(name) + `$`).FindStringSubmatchIndex(nm)
		if m == nil {
			continue // from a library, or dropped by the linker
		}
		if m[0] < at {
			t.Errorf("%s lies before %s, which is before it in the order", name, last)
		}
		at, last, found = m[0], name, found+1
	}
	if found < 4 {
		t.Errorf("of the order's functions %d are in the program", found)
	}
}

// TestPGOClang has clang and rustc promote the calls that a profile of candid's says have one
// callee most of the time, and LLVM's own tool read both of its formats.
func TestPGOClang(t *testing.T) {
	fixture.OnlyFull(t, "TestPGOGCC")
	dir := t.TempDir()
	src, program := pgoSource(t, "poly.cc"), filepath.Join(dir, "poly")
	flags := []string{"-O2", "-g", "-fdebug-info-for-profiling", "-funique-internal-linkage-names", src, "-o"}
	tool(t, dir, "clang++", append(flags, program)...)
	jfr := recordedProgram(t, dir, program, "8000")
	binary, text := filepath.Join(dir, "poly.prof"), filepath.Join(dir, "poly.proftext")
	ok(t, "pgo", jfr, "-o", binary)
	ok(t, "pgo", jfr, "-o", text)
	b, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(dir, "again")
	tool(t, dir, "llvm-profdata", "merge", "--sample", "--text", binary, "-o", again)
	a, err := os.ReadFile(again)
	if err != nil {
		t.Fatal(err)
	}
	if string(a) != string(b) {
		t.Errorf("LLVM reads the binary profile as\n%s\nand candid writes the same as text as\n%s", a, b)
	}
	for _, profile := range []string{binary, text} {
		out := tool(t, dir, "clang++", append([]string{"-fprofile-sample-use=" + profile, "-mllvm", "-sample-profile-use-profi", "-Wall", "-Werror",
			"-Rpass=pgo-icall-prom"}, append(flags, program+".pgo")...)...)
		for _, want := range []string{"Promote indirect call to _ZNK3Add5applyEm", "Promote indirect call to _ZL4half"} {
			if !strings.Contains(out, want) {
				t.Errorf("clang does not say %q, but:\n%s", want, out)
			}
		}
	}

	order := filepath.Join(dir, "poly.order")
	ok(t, "pgo", jfr, "-o", order)
	names, err := os.ReadFile(order)
	if err != nil {
		t.Fatal(err)
	}
	tool(t, dir, "clang++", append([]string{"-fuse-ld=lld", "-ffunction-sections", "-Wl,--symbol-ordering-file=" + order}, append(flags, program+".ordered")...)...)
	checkOrder(t, tool(t, dir, "nm", "-n", program+".ordered"), strings.Fields(string(names)))
}

// TestPGORust is TestPGOClang for rustc, whose option for sample profiles is still unstable.
func TestPGORust(t *testing.T) {
	fixture.OnlyFull(t, "TestPGOGCC")
	if _, err := exec.LookPath("rustc"); err != nil {
		t.Skip("no rustc")
	}
	dir := t.TempDir()
	src, program := pgoSource(t, "poly.rs"), filepath.Join(dir, "poly")
	flags := []string{"-O", "-g", "-Ccodegen-units=1", "-Csymbol-mangling-version=v0", "-Zdebug-info-for-profiling", src, "-o"}
	tool(t, dir, "rustc", append(flags, program)...)
	jfr := recordedProgram(t, dir, program, "12000")
	file := filepath.Join(dir, "poly.prof")
	ok(t, "pgo", jfr, "-o", file)
	tool(t, dir, "rustc", append([]string{"-Zprofile-sample-use=" + file}, append(flags, program+".pgo")...)...)
	// Add's method is inlined into the loop of run: a comparison with its address comes first.
	code := tool(t, dir, "objdump", "-d", "--no-show-raw-insn", program+".pgo")
	_, run, _ := strings.Cut(code, "4poly3run>:")
	run, _, _ = strings.Cut(run, "\n\n")
	if !regexp.MustCompile(`lea .*Add.*apply`).MatchString(run) {
		t.Errorf("run does not compare with the address of Add's method:\n%s", run)
	}
}

// TestPGOUsage checks what candid pgo refuses.
func TestPGOUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"pgo"}, exitUsage, "give the recordings"},
		{[]string{"pgo", "x.jfr"}, exitUsage, "-o OUT"},
		{[]string{"pgo", "x.jfr", "-o", "x.jpg"}, exitUsage, "--format"},
		{[]string{"pgo", "x.jfr", "-o", "x.pgo", "--format", "cobol"}, exitUsage, "there are go, llvm"},
		{[]string{"pgo", "x.jfr", "y.jfr", "-o", "x.pgo", "--weight", "1"}, exitUsage, "1 numbers for 2 recordings"},
		{[]string{"pgo", "x.jfr", "-o", "x.pgo", "--weight", "-1"}, exitUsage, "above 0"},
		{[]string{"pgo", "missing.jfr", "-o", "x.pgo"}, exitFailed, "missing.jfr"},
	} {
		if r := candid(t, c.args...); r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("candid %s: exit code %d, %s", strings.Join(c.args, " "), r.code, r.err)
		}
	}
}
