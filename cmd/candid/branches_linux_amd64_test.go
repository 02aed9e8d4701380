package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// TestPGOBranches records the branches of a program that goes each way in a known share. Blocks'
// counts have to show that share, although the rare block takes most of the time, and other tools
// have to read the branches.
func TestPGOBranches(t *testing.T) {
	dir := t.TempDir()
	program, source := filepath.Join(dir, "split"), pgoSource(t, "split.c")
	tool(t, dir, "clang", "-O2", "-g", "-fdebug-info-for-profiling", "-Wl,--emit-relocs", source, "-o", program)
	jfr := filepath.Join(dir, "split.jfr")
	ok(t, "record", "-q", "--branches", "-F", "1000", "-o", jfr, "--", program, "600")
	r := ok(t, "report", jfr)
	if !regexp.MustCompile(`branches: \d+ from \d+ samples`).MatchString(r.out) {
		t.Errorf("the report does not say what became of the branches:\n%s", r.out)
	}
	text := filepath.Join(dir, "split.proftext")
	r = ok(t, "pgo", jfr, "-o", text)
	if !regexp.MustCompile(`how often blocks ran is from \d+ branches`).MatchString(r.err) {
		t.Fatalf("candid pgo says %s", r.err)
	}
	b, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	line := func(part string) int {
		before, _, _ := strings.Cut(string(src), part)
		return strings.Count(before, "\n")
	}
	_, body, _ := strings.Cut(string(b), "work:")
	most := func(at int) (n int) {
		for _, m := range regexp.MustCompile(`(?m)^ (\d+)(?:\.\d+)?: (\d+)`).FindAllStringSubmatch(body, -1) {
			if l, _ := strconv.Atoi(m[1]); l == at-line("static uint64_t work") {
				c, _ := strconv.Atoi(m[2])
				n = max(n, c)
			}
		}
		return n
	}
	often, rare := most(line("sum += i ^")), most(line("sum = sum /"))
	if share := float64(often) / float64(max(rare, 1)); share < 13 || share > 17 {
		t.Errorf("the blocks ran %d and %d times: %.1f, not 15, to 1\n%s", often, rare, share, body)
	}

	prof := filepath.Join(dir, "split.prof")
	ok(t, "pgo", jfr, "-o", prof)
	tool(t, dir, "clang", "-O2", "-g", "-fdebug-info-for-profiling", "-fprofile-sample-use="+prof, "-mllvm", "-sample-profile-use-profi", "-Wall", "-Werror",
		source, "-o", program+".pgo")
	preagg := filepath.Join(dir, "split.preagg")
	ok(t, "pgo", jfr, "-o", preagg)
	stacks := filepath.Join(dir, "split.brstack")
	ok(t, "pgo", jfr, "-o", stacks)
	b, err = os.ReadFile(preagg)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^B [0-9a-f]+ [0-9a-f]+ \d+ 0$`).Match(b) || !regexp.MustCompile(`(?m)^F [0-9a-f]+ [0-9a-f]+ \d+$`).Match(b) {
		t.Errorf("pre-aggregated branches are\n%s", b)
	}
	// llvm-profgen belongs to LLVM, but is not on the path.
	readers, _ := filepath.Glob("/usr/lib/llvm-*/bin/llvm-profgen")
	if len(readers) == 0 {
		fixture.Missing(t, "llvm-profgen")
	}
	theirs := filepath.Join(dir, "theirs.prof")
	if out, err := exec.Command(readers[0], "--perfscript="+stacks, "--binary="+program, "--output="+theirs, "--format=text").CombinedOutput(); err != nil {
		t.Fatalf("llvm-profgen: %v\n%s", err, out)
	}
	if b, err = os.ReadFile(theirs); err != nil {
		t.Fatal(err)
	}
	_, body, _ = strings.Cut(string(b), "work:")
	often, rare = most(line("sum += i ^")), most(line("sum = sum /"))
	if share := float64(often) / float64(max(rare, 1)); share < 13 || share > 17 {
		t.Errorf("in llvm-profgen's profile the blocks ran %d and %d times: %.1f, not 15, to 1\n%s", often, rare, share, body)
	}
	if r := candid(t, "record", "--branches", "-o", filepath.Join(dir, "split.pb.gz"), "--", program, "1"); r.code != exitUsage || !strings.Contains(r.err, "cannot hold them") {
		t.Errorf("a recording of branches as pprof ends with code %d: %s", r.code, r.err)
	}
}
