package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/snapshot"
)

// generating compiles a program whose stacks pass through code that nobody knows.
func generating(t *testing.T) string {
	t.Helper()
	return fixture.C(t, "../../internal/record/testdata/guesses.c", "-g", "-fno-omit-frame-pointer")
}

// candid says before and after what --save-broken saves, and report walks it again: with the same frames, or
// with others, and then it says so.
func TestSaveBroken(t *testing.T) {
	t.Parallel()
	able(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("the program generates x86-64 code")
	}
	program := generating(t)
	tooLittle := fixture.Watch(t)
	dir := t.TempDir()
	r := ok(t, "record", "-F", "499", "-o", filepath.Join(t.TempDir(), "x.jfr"), "--save-broken", dir, "--", program, "3")
	for _, words := range []string{"candid: " + dir + " gets up to 20 stacks that are not complete", "secrets of the program", "saved in " + dir} {
		if !strings.Contains(r.err, words) {
			t.Errorf("it does not say %q:\n%s", words, r.err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "candid-broken-*.snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		tooLittle("no stack was saved:\n%s", r.err)
		return
	}
	for _, file := range files {
		r := ok(t, "report", file)
		for _, words := range []string{"guesses (", "· linux/amd64 · ", "when it was saved:\n", "; at worst ", "walked by this candid: the same\n"} {
			if !strings.Contains(r.out, words) {
				t.Errorf("%s: the report does not say %q:\n%s", file, words, r.out)
			}
		}
		t.Log(r.out)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	list, err := snapshot.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	want := &list[0].Want
	want.Frames[len(want.Frames)-1].Function = "elsewhere\x1b[2J"
	if b, err = snapshot.Encode(list...); err != nil {
		t.Fatal(err)
	}
	put := func(name string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	other := put("other", b)
	r = candid(t, "report", other)
	if r.code != exitFailed || r.err != "" || !strings.Contains(r.out, "walked by this candid (- when it was saved, + now):\n") || !strings.Contains(r.out, "\n  - ") || !strings.Contains(r.out, "\n  + ") || strings.Contains(r.out, "\x1b") {
		t.Errorf("of another stack: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	candid(t, "report", "--json", other).refused(t, exitUsage, "--json", "is for profiles")
	candid(t, "report", put("damaged", b[:len(b)/2])).refused(t, exitFailed, "damaged", "not a snapshot of candid, or damaged")
}

// --save-broken needs a directory in which nobody else may exchange files. Without it nothing is recorded.
func TestSaveBrokenNeedsDirectory(t *testing.T) {
	t.Parallel()
	able(t)
	out := filepath.Join(t.TempDir(), "x.jfr")
	missing := filepath.Join(t.TempDir(), "missing")
	run := func(args ...string) result {
		return candid(t, append(append([]string{"record", "-q", "-o", out}, args...), "-p", itoa(os.Getpid()))...)
	}
	run("--save-broken", "").refused(t, exitUsage, "--save-broken")
	run("--save-broken", missing).refused(t, exitFailed, missing, "no such file or directory")
	run("--save-broken", public(t, 0o777)).refused(t, exitFailed, "everybody may write to the directory")
	if os.Geteuid() == 0 {
		theirs := public(t, 0o755)
		if err := os.Chown(theirs, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		run("--save-broken", theirs).refused(t, exitFailed, theirs, "another user")
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("there is a recording")
	}
}
