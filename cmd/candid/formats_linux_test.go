package main

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// recorded returns a recording of a real Java program, made once.
func recorded(t testing.TB) string {
	t.Helper()
	argv := chain(t, "2")
	file := filepath.Join(shared, "chain.pb.gz")
	recordOnce.Do(func() {
		args := append([]string{"record", "-q", "-F", "997", "-o", file, "--"}, argv...)
		if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
			recordError = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if recordError != nil {
		t.Fatal(recordError)
	}
	return file
}

var (
	recordOnce  sync.Once
	recordError error
)

func TestFormats(t *testing.T) {
	file := recorded(t)
	dir := t.TempDir()
	for name, check := range map[string]func(t *testing.T, content []byte){
		"x.pb.gz": func(t *testing.T, b []byte) {
			z, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if raw, err := io.ReadAll(z); err != nil || !bytes.Contains(raw, []byte("Chain.f5")) {
				t.Errorf("%d bytes, %v", len(raw), err)
			}
		},
		"x.html": func(t *testing.T, b []byte) {
			s := string(b)
			_, data, _ := strings.Cut(s, `id="data">`)
			data, _, _ = strings.Cut(data, "<")
			raw, err := io.ReadAll(flate.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data))))
			if err != nil || !bytes.Contains(raw, []byte("Chain.f5")) || !bytes.Contains(raw, []byte("Chain.main")) {
				t.Errorf("%d bytes of packed data, %v", len(raw), err)
			}
			if !strings.HasPrefix(s, "<!") || !strings.HasSuffix(strings.TrimSpace(s), "</html>") {
				t.Errorf("%.200s", s)
			}
			for _, far := range []string{"src=\"http", "href=\"http", "src='http", "@import"} {
				if strings.Contains(s, far) {
					t.Errorf("the page loads something: %s", far)
				}
			}
		},
		"x.collapsed": func(t *testing.T, b []byte) {
			if samples(string(b), "Chain.main;Chain.run;Chain.f1;Chain.f2") == 0 {
				t.Errorf("%s", b)
			}
		},
		"x.speedscope.json": func(t *testing.T, b []byte) {
			var v struct {
				Shared   struct{ Frames []struct{ Name string } }
				Profiles []struct {
					Name    string
					Samples [][]int
					Weights []float64
				}
			}
			if err := json.Unmarshal(b, &v); err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, p := range v.Profiles {
				if len(p.Samples) != len(p.Weights) {
					t.Errorf("%s: %d samples, %d weights", p.Name, len(p.Samples), len(p.Weights))
				}
				for _, s := range p.Samples {
					n++
					for _, f := range s {
						if f < 0 || f >= len(v.Shared.Frames) {
							t.Fatalf("frame %d of %d", f, len(v.Shared.Frames))
						}
					}
				}
			}
			if n < 50 {
				t.Errorf("%d samples in %d profiles", n, len(v.Profiles))
			}
		},
		"x.otlp": func(t *testing.T, b []byte) {
			for _, want := range []string{"Chain.f5", "thread.name", "profile.frame.type", "process.pid"} {
				if !bytes.Contains(b, []byte(want)) {
					t.Errorf("no %s in %d bytes", want, len(b))
				}
			}
		},
		"x.firefox.json": func(t *testing.T, b []byte) {
			if !json.Valid(b) || !bytes.Contains(b, []byte(`"Chain.f5"`)) || !bytes.Contains(b, []byte(`"preprocessedProfileVersion":61`)) {
				t.Errorf("%.300s", b)
			}
		},
		"x.txt": func(t *testing.T, b []byte) {
			if s := string(b); !strings.Contains(s, "Chain.f5") || !strings.Contains(s, "hotspot 17") || strings.Contains(s, "\x1b") {
				t.Errorf("%s", s)
			}
		},
		"x.json": func(t *testing.T, b []byte) {
			if !json.Valid(b) || !bytes.Contains(b, []byte(`"Chain.f5"`)) {
				t.Errorf("%.300s", b)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(dir, name)
			if said := ok(t, "convert", file, "-o", out).err; !strings.Contains(said, "wrote "+out) {
				t.Errorf("the name of what was written is not in %q", said)
			}
			b, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			check(t, b)
			_, ext, _ := strings.Cut(name, ".")
			if r := ok(t, "convert", file, "-o", "-", "--format", ext); r.out != string(b) {
				t.Errorf("-o - gives %d other bytes than the file's %d", len(r.out), len(b))
			}
			candid(t, "convert", file, "-o", out).refused(t, exitFailed, "--force")
			ok(t, "convert", file, "-o", out, "--force")
			for _, mode := range []os.FileMode{0o600, 0o644} {
				if mode != 0o600 {
					ok(t, "convert", file, "-o", out, "--force", "--mode", fmt.Sprintf("%o", mode))
				}
				if info, err := os.Stat(out); err != nil || info.Mode().Perm() != mode { // whatever the umask is
					t.Errorf("its mode is %v instead of %v, %v", info.Mode(), mode, err)
				}
			}
			candid(t, "convert", file, "-o", out, "--force", "--mode", "755").refused(t, exitUsage, "mode")
		})
	}
}

// A file that is read and written again stays the same.
func TestRoundTrip(t *testing.T) {
	file := recorded(t)
	dir := t.TempDir()
	again := filepath.Join(dir, "again.pb.gz")
	ok(t, "convert", file, "-o", again)
	for _, args := range [][]string{{"-t"}, {"--kinds"}} {
		a := ok(t, append([]string{"convert", file, "-o", "-", "--format", "collapsed"}, args...)...).out
		b := ok(t, append([]string{"convert", again, "-o", "-", "--format", "collapsed"}, args...)...).out
		if a != b || samples(a, "") == 0 {
			t.Errorf("%v: %d samples, after a round trip %d", args, samples(a, ""), samples(b, ""))
		}
	}
	text := filepath.Join(dir, "a.collapsed")
	ok(t, "convert", file, "-o", text)
	first, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := ok(t, "convert", text, "-o", "-", "--format", "collapsed").out; got != string(first) {
		t.Errorf("collapsed: %d samples, after a round trip %d", samples(string(first), ""), samples(got, ""))
	}
}

// Other programs read what candid writes.
func TestGoToolPprof(t *testing.T) {
	t.Parallel()
	file := recorded(t)
	c := exec.Command("go", "tool", "pprof", "-top", "-nodecount=500", file)
	c.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"Chain.f5", "Chain.main", "start_thread", "Type: cpu"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}

func TestReport(t *testing.T) {
	file := recorded(t)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"SELF", "TOTAL", "Chain.f8", "hotspot 17", "complete"}},
		{[]string{"--view", "tree"}, []string{"CALL TREE", "CALL TREE", " Chain.f8"}},
		{[]string{"--view", "threads"}, []string{"THREAD", "main"}},
		{[]string{"--callers", "Chain.f8$"}, []string{"← Chain.f7", "← Chain.f1"}},
		{[]string{"-t"}, []string{"main"}},
		{[]string{"--top", "2"}, []string{"more"}},
		{[]string{"--thread", "^main$"}, []string{"Chain.f8"}},
		{[]string{"--focus", "Chain.f8"}, []string{"Chain.f8"}},
	} {
		got := ok(t, append([]string{"report", file}, c.args...)...)
		for _, w := range c.want {
			if !strings.Contains(got.out, w) {
				t.Errorf("report %v: %q is missing in:\n%s", c.args, w, got.out)
			}
		}
		if got.err != "" || strings.Contains(got.out, "\x1b") {
			t.Errorf("report %v: colours in a file, or errors: %q", c.args, got.err)
		}
	}
	if got := ok(t, "report", file, "--ignore", "Chain.f8").out; strings.Contains(got, "Chain.f8") {
		t.Errorf("--ignore: it is still there:\n%s", got)
	}
	var v struct {
		Schema  string
		All     struct{ Samples, Weight int }
		Methods []struct {
			Name string
			Kind string
		}
	}
	if err := json.Unmarshal([]byte(ok(t, "report", file, "--json").out), &v); err != nil {
		t.Fatal(err)
	}
	if v.Schema == "" || v.All.Samples < 50 || len(v.Methods) < 9 {
		t.Errorf("JSON: %+v", v)
	}
	candid(t, "report", file, "--view", "callers").refused(t, exitUsage, "--callers")
}

// record prints what it says it prints, where it says so.
func TestRecordPrints(t *testing.T) {
	t.Parallel()
	able(t)
	pid := program(t, "spin").pid()
	var c *exec.Cmd
	var r result
	for _, long := range forLong {
		c = command(t, "record", "-F", "500", "-p", pid, "-d", long)
		if r = finish(t, c); sampled(r) {
			break
		}
	}
	files, _ := filepath.Glob(filepath.Join(c.Dir, "candid-"+pid+"-*.jfr"))
	if r.code != exitOK || len(files) != 1 || !strings.Contains(r.out, "spinUntil") || !strings.Contains(r.err, filepath.Base(files[0])) {
		t.Errorf("without -o: code %d, files %v\n%s\n%s", r.code, files, r.out, r.err)
	}
	for _, w := range []string{"candid: perf events", "samples", "lost", "stacks", "complete", "cost", "written"} {
		if !strings.Contains(r.err, w) {
			t.Errorf("%q is missing in:\n%s", w, r.err)
		}
	}
	if strings.Contains(r.err, "\x1b") || strings.Contains(r.err, "\r") {
		t.Errorf("terminal codes in a file: %q", r.err)
	}
	r = forEnough(t, sampled, "record", "-F", "500", "-p", pid, "--json", "-q", "-o", "x.html")
	var v struct {
		All  struct{ Samples int }
		File string
	}
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || v.All.Samples == 0 || v.File != "x.html" || r.err != "" {
		t.Errorf("--json: %v %+v\n%s%s", err, v, r.out, r.err)
	}
	if r = forEnough(t, sampled, "record", "-p", pid, "-F", "500", "-q", "-o", "x.html"); r.out+r.err != "" {
		t.Errorf("-q prints %q %q", r.out, r.err)
	}
	r = forEnough(t, sampled, "record", "-p", pid, "-F", "500", "-o", "-", "--format", "collapsed")
	if r.code != exitOK || r.out == "" {
		t.Errorf("-o -: exit code %d\n%s", r.code, r.err)
	}
	for l := range strings.Lines(r.out) {
		if len(stacks(l)) != 1 {
			t.Errorf("-o - mixes the profile with %q", l)
		}
	}
}

func TestPS(t *testing.T) {
	launcher, classes := java(t)
	vm := start(t, exec.Command(launcher, "-cp", classes, "Ticks", "find me"))
	vm.wait(t, "tick")
	for l := range strings.Lines(ok(t, "ps").out) {
		f := strings.Fields(l)
		if len(f) > 5 && f[0] == vm.pid() {
			if f[2] != "hotspot" || !strings.HasPrefix(f[3], "17.0.") || !strings.Contains(l, "Ticks find me") {
				t.Errorf("listed as %q", l)
			}
			return
		}
	}
	var rows []psRow
	if err := json.Unmarshal([]byte(ok(t, "ps", "--json", "Ticks find").out), &rows); err != nil {
		t.Fatal(err)
	}
	t.Errorf("process %s is not listed: %+v", vm.pid(), rows)
}

func TestPSJSON(t *testing.T) {
	able(t)
	idle := program(t, "idle")
	var rows []psRow
	if err := json.Unmarshal([]byte(ok(t, "ps", "-a", "--json").out), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		// Tests beside this one run candid.exe.
		if strings.HasSuffix(r.Command, "ps -a --json") && !strings.Contains(r.Command, ".exe ") {
			t.Errorf("it lists itself: %+v", r)
		}
		if itoa(r.PID) == idle.pid() {
			if !strings.HasPrefix(r.Runtime, "go 1.") || r.Threads < 2 || r.User == "" || r.WhyNot != "" {
				t.Errorf("%+v", r)
			}
			return
		}
	}
	t.Errorf("process %s is not listed among %d", idle.pid(), len(rows))
}

func TestHelp(t *testing.T) {
	if out := ok(t).out; !strings.Contains(out, "Examples:") || !strings.Contains(out, "Exit codes") {
		t.Errorf("candid alone prints\n%s", out)
	}
	for _, c := range newRoot().Commands() {
		name := c.Name()
		out := ok(t, name, "--help").out
		if !strings.Contains(out, "Examples:") || !strings.Contains(out, "candid "+name) && !c.IsAdditionalHelpTopicCommand() {
			t.Errorf("%s --help:\n%s", name, out)
		}
		for l := range strings.Lines(out) {
			if len([]rune(strings.TrimSuffix(l, "\n"))) > 100 {
				t.Errorf("%s --help: a line of %d columns: %s", name, len([]rune(l)), l)
			}
		}
	}
	if out := ok(t, "help", "privileges").out; !strings.Contains(out, "Kubernetes") || !strings.Contains(out, "capabilities:") {
		t.Errorf("candid help privileges:\n%s", out)
	}
	if out := ok(t, "version").out; !strings.HasPrefix(out, "candid ") || !strings.Contains(out, "linux/") || ok(t, "--version").out != out {
		t.Errorf("version: %s", out)
	}
}

func TestCompletion(t *testing.T) {
	script := ok(t, "completion", "bash").out
	c := exec.Command("bash", "-n")
	c.Stdin = strings.NewReader(script)
	if out, err := c.CombinedOutput(); err != nil || len(script) < 1000 {
		t.Errorf("bash does not take the script of %d bytes: %v\n%s", len(script), err, out)
	}
	for _, shell := range []string{"zsh", "fish"} {
		if out := ok(t, "completion", shell).out; !strings.Contains(out, "candid") {
			t.Errorf("%s: %.100s", shell, out)
		}
	}
	if out := ok(t, "__complete", "rec").out; !strings.HasPrefix(out, "record") {
		t.Errorf("rec completes to %s", out)
	}
}
