package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/report"
)

// written writes a profile to a file with that name.
func written(t testing.TB, name string, p *profile.Profile) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kind, err := format.ForPath(name, "")
	if err == nil {
		err = format.Write(f, kind, p, format.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestFilters checks that the same filter leaves the same in report and convert, and that both say
// how much.
func TestFilters(t *testing.T) {
	file := written(t, "java.jfr", profiletest.Java())
	for _, c := range []struct {
		filter []string
		left   uint64 // of 10,000; 0: exit code 5
	}{
		{[]string{"--thread", "^GC|^C2"}, 1800},
		{[]string{"--thread-kind", "compiler,gc"}, 1800},
		{[]string{"--process", "shop.jar", "--to", "-1s"}, 8999},
		{[]string{"--process", "12,4711", "--to", "-1s"}, 8999},
		{[]string{"--process", "^shop"}, 0},
		{[]string{"--process", "471"}, 0},
		{[]string{"--from", "2s", "--to", "7s"}, 5000},
		{[]string{"--from", "-3s"}, 3001}, // the last sample is taken when the recording ends
		{[]string{"--from", "2026-05-04T12:30:02Z", "--to", "2026-05-04T12:30:03Z"}, 1000},
		{[]string{"--state", "running", "--to", "-1s"}, 8999},
		{[]string{"--thread", "nobody"}, 0},
		{[]string{"--state", "sleeping"}, 0},
		{[]string{"--focus", "^no such function$"}, 0},
		{[]string{"--from", "20s"}, 0},
	} {
		if c.left == 0 {
			candid(t, append([]string{"report", file}, c.filter...)...).refused(t, exitNoSamples, file, "no samples")
			candid(t, append([]string{"convert", file, "-o", "x.pb.gz"}, c.filter...)...).refused(t, exitNoSamples, file, "no samples")
			continue
		}
		var r report.Report
		if err := json.Unmarshal([]byte(ok(t, append([]string{"report", file, "--json"}, c.filter...)...).out), &r); err != nil {
			t.Fatal(err)
		}
		if r.Shown.Samples != c.left || r.All.Samples != 10_000 {
			t.Errorf("report %v shows %d of %d, want %d", c.filter, r.Shown.Samples, r.All.Samples, c.left)
		}
		out := filepath.Join(t.TempDir(), "part.jfr")
		said := ok(t, append([]string{"convert", file, "-o", out}, c.filter...)...).err
		p, err := format.Read(out)
		if err != nil || uint64(len(p.Samples)) != c.left {
			t.Fatalf("convert %v leaves %d samples, want %d: %v", c.filter, len(p.Samples), c.left, err)
		}
		if !strings.Contains(said, "of 10,000 samples, ") || !strings.Contains(said, " pass") {
			t.Errorf("convert %v says %q", c.filter, said)
		}
		if text := ok(t, append([]string{"report", file}, c.filter...)...).out; !strings.Contains(text, "of 10,000 samples, ") {
			t.Errorf("report %v does not say what part it shows:\n%s", c.filter, text)
		}
	}
	for flag, bad := range map[string]string{"--thread": "(", "--focus": "*", "--ignore": "[", "--from": "5 apples", "--to": "soon", "--state": "tired", "--thread-kind": "fast"} {
		for _, args := range [][]string{{"report", file}, {"convert", file, "-o", "x.jfr"}, {"view", file}, {"record", "-p", "1"}} {
			candid(t, append(args, flag, bad)...).refused(t, exitUsage, flag)
		}
	}
}

// TestFirstEvent checks that every command shows the event that occurred, not the one that was
// requested first and did not occur.
func TestFirstEvent(t *testing.T) {
	p := profiletest.Later(profiletest.Java())
	file := written(t, "java.jfr", p)
	want := p.Events[1].Name
	var r report.Report
	if err := json.Unmarshal([]byte(ok(t, "report", file, "--json").out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Event.Name != want || r.All.Samples == 0 {
		t.Errorf("report is of %d samples of %s, not of %s", r.All.Samples, r.Event.Name, want)
	}
	asked := ok(t, "convert", file, "-o", "-", "--format", "collapsed", "-e", want).out
	got := ok(t, "convert", file, "-o", "-", "--format", "collapsed")
	if got.out != asked || asked == "" || !strings.Contains(got.err, "one event: "+want) {
		t.Errorf("collapsed without --event has %d bytes, with it %d; said %q", len(got.out), len(asked), got.err)
	}
	var d struct {
		Event struct{ Name string } `json:"event"`
		Base  struct{ Samples uint64 }
	}
	out := ok(t, "diff", file, file, "--json").out
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if d.Event.Name != want {
		t.Errorf("diff is of %q: %.300s", d.Event.Name, out)
	}
}
