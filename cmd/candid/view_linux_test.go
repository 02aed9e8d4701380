package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/candid-profiler/candid/internal/chromium"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/format/pprof"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
)

// TestView opens a recording as people do, compares the page with the report, and ends it with
// Ctrl-C.
func TestView(t *testing.T) {
	t.Parallel()
	file := recorded(t)
	v := start(t, exec.Command(binary, "view", file))
	url := v.line(t)
	if !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("it prints %q", url)
	}
	// A second server takes another port and another token.
	other := start(t, exec.Command(binary, "view", file))
	if second := other.line(t); second == url || second[:strings.LastIndex(second, ":")] != url[:strings.LastIndex(url, ":")] {
		t.Errorf("two pages are at %s and %s", url, second)
	}
	res, err := http.Get(url[:strings.LastIndex(strings.TrimSuffix(url, "/"), "/")+1])
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusNotFound || strings.Contains(string(body), "<script") {
		t.Errorf("without the token: %s, %s", res.Status, body)
	}

	b := chromium.Open(t, 1280, 800)
	sameAsReport(t, b, url, file, "#tab=methods")
	for _, r := range b.Requests {
		if !strings.HasPrefix(r, url) && r != "about:blank" {
			t.Errorf("the page asked for %s", r)
		}
	}
	if len(b.Errors) > 0 {
		t.Errorf("the page complained: %s", b.Errors)
	}

	if err := v.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := v.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if _, err := http.Get(url); err == nil {
		t.Error("the page is still there")
	}
}

// sameAsReport compares every row of the page's method list with the report's.
func sameAsReport(t *testing.T, b *chromium.Browser, url, file, hash string, filter ...string) {
	t.Helper()
	var want report.Report
	if err := json.Unmarshal([]byte(ok(t, append([]string{"report", file, "--json"}, filter...)...).out), &want); err != nil {
		t.Fatal(err)
	}
	separator := "#"
	if strings.Contains(url+hash, "#") {
		separator = "&"
	}
	b.Show(url+hash+separator+"starts=shown", "document.documentElement?.dataset.ready")
	var got []struct {
		Name, Module                      string
		Self, Total, SelfSamples, Samples uint64
	}
	b.Eval("candid.methods()", &got)
	methods := map[string]report.Method{}
	for _, m := range want.Methods {
		methods[m.Name+"\x00"+m.Module] = m
	}
	if len(got) != len(methods) || len(got) == 0 {
		t.Errorf("%v: the page has %d methods, the report %d", filter, len(got), len(methods))
	}
	for _, m := range got {
		w := methods[m.Name+"\x00"+m.Module]
		if m.Self != w.Self.Weight || m.Total != w.Total.Weight || m.SelfSamples != w.Self.Samples || m.Samples != w.Total.Samples {
			t.Errorf("%v: the page has %+v, the report %+v", filter, m, w)
		}
	}
}

// TestViewTime views a stretch of time of a recording that keeps times, and one thread of it.
func TestViewTime(t *testing.T) {
	t.Parallel()
	launcher, classes := java(t)
	file := filepath.Join(t.TempDir(), "chain.jfr")
	ok(t, "record", "-q", "-F", "997", "-o", file, "--", launcher, "-cp", classes, "Chain", "2")
	v := start(t, exec.Command(binary, "view", file))
	url := v.line(t)
	b := chromium.Open(t, 1280, 800)
	sameAsReport(t, b, url, file, "")
	sameAsReport(t, b, url, file, "#from=500000000&to=1300000000&tab=timeline", "--from", "500ms", "--to", "1300ms")
	sameAsReport(t, b, url, file, "#from=500000000&focus=f3%24&tab=tree", "--from", "500ms", "--focus", "f3$")
	// The flags of the filters appear in the address that is printed.
	for _, filter := range [][]string{
		{"--from", "300ms", "--to", "-200ms", "--focus", "f[1-3]$", "--ignore", "f8"},
		{"--thread", "^main$|Compiler", "--thread-kind", "java", "--state", "running"},
	} {
		v := start(t, exec.Command(binary, append([]string{"view", file}, filter...)...))
		sameAsReport(t, b, v.line(t), file, "", filter...)
	}
	if len(b.Errors) > 0 {
		t.Errorf("the page complained: %s", b.Errors)
	}
}

// TestViewLabel views what a label leaves: the page has no filter for labels.
func TestViewLabel(t *testing.T) {
	t.Parallel()
	b := profile.NewBuilder()
	b.Profile().Events = []profile.Event{profile.NamedEvent("cpu", "nanoseconds", 1)}
	for i, tenant := range []string{"acme", "globex", "acme", ""} {
		var labels []profile.Label
		if tenant != "" {
			labels = []profile.Label{profile.TextLabel("tenant", tenant)}
		}
		call, _ := b.Labeled("", labels)
		fn := b.Func(profile.Func{Name: fmt.Sprint("f", i)})
		b.Add(profile.Sample{Weight: 1 << i, Thread: b.Thread(1, 1, "main"), Node: b.Node(profile.RootNode, b.Frame(profile.Frame{Func: fn})), Syscall: call})
	}
	file := filepath.Join(t.TempDir(), "labels.pb.gz")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pprof.Write(f, b.Finish()), f.Close()); err != nil {
		t.Fatal(err)
	}
	page := chromium.Open(t, 1280, 800)
	v := start(t, exec.Command(binary, "view", "--threads", "--label", "tenant=^acme$", file))
	url := v.line(t)
	if !strings.HasSuffix(url, "#split=thread") {
		t.Errorf("the page is at %s", url)
	}
	sameAsReport(t, page, url, file, "", "--label", "tenant=^acme$")
	var samples int
	if page.Eval("candid.chosen().all.samples", &samples); samples != 2 {
		t.Errorf("the page shows %d of 4 samples, want the 2 of the tenant", samples)
	}
	if len(page.Errors) > 0 {
		t.Errorf("the page complained: %s", page.Errors)
	}
	candid(t, "view", "--label", "tenant=none", file).refused(t, exitNoSamples, "tenant")
}

func TestViewRefusals(t *testing.T) {
	t.Parallel()
	file := recorded(t)
	candid(t, "view").refused(t, exitUsage, "file")
	candid(t, "view", "/nonexistent.pb.gz").refused(t, exitFailed, "/nonexistent.pb.gz")
	candid(t, "view", "--diff", file).refused(t, exitUsage, "--diff", "two")
	candid(t, "view", "--port", "99999", file).refused(t, exitUsage, "99999")
	candid(t, "view", "--thread", "nobody", file).refused(t, exitNoSamples, "nobody")
	candid(t, "view", "--thread", "nobody", "--diff", file, file).refused(t, exitNoSamples, "nobody")
	candid(t, "view", "--focus", "(", file).refused(t, exitUsage, "--focus")
	first := start(t, exec.Command(binary, "view", file))
	url := first.line(t)
	port := url[len("http://127.0.0.1:"):strings.LastIndex(strings.TrimSuffix(url, "/"), "/")]
	candid(t, "view", "--port", port, file).refused(t, exitFailed, port, "--port")
}

// TestViewFollows views a recording while it is being made, on the page of record --view and on one
// of its own, until the recording ends.
func TestViewFollows(t *testing.T) {
	t.Parallel()
	names := []string{"chain.jfr", "chain.jfr.zst"}
	if fixture.Full(t) { // the other packed format; TestKilledRecording reads both while they grow
		names = append(names, "chain.jfr.gz")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { viewFollows(t, name) })
	}
}

func viewFollows(t *testing.T, name string) {
	launcher, classes := java(t)
	file := filepath.Join(t.TempDir(), name)
	chain := start(t, exec.Command(launcher, "-cp", classes, "Chain", "100"))
	told, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	c := exec.Command(binary, "record", "-p", strconv.Itoa(chain.Process.Pid), "--view", "-F", "997", "-o", file)
	c.Stderr = stderr
	rec := start(t, c)
	stderr.Close()
	url := ""
	lines := bufio.NewScanner(told)
	for url == "" && lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "the page is at "); ok {
			url = at
		}
	}
	go func() {
		for lines.Scan() { // so that it can go on printing
		}
	}()
	first := chromium.Open(t, 1280, 800)
	first.Show(url+"#tab=methods", "document.documentElement?.dataset.ready")
	first.Until("candid.chosen().all.samples > 50")
	if facts := first.Text("document.querySelector('.facts').textContent"); !strings.Contains(facts, "recording, ") {
		t.Errorf("the page says %q while it is recorded", facts)
	}
	// The file exists now: it can be followed too.
	v := start(t, exec.Command(binary, "view", file))
	second := chromium.Open(t, 1280, 800)
	other := v.line(t)
	second.Show(other+"#focus=run%24&tab=methods", "document.documentElement?.dataset.ready")
	for _, b := range []*chromium.Browser{first, second} {
		b.Eval("window.before = candid.chosen().chosen.samples", nil)
		b.Until("candid.chosen().chosen.samples > window.before")
	}
	if err := rec.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*chromium.Browser{first, second} {
		b.Until("!document.querySelector('.facts').textContent.includes('recording, ') && !candid.busy()")
	}
	sameAsReport(t, first, url, file, "#tab=methods")
	sameAsReport(t, second, other, file, "#focus=run%24&tab=methods", "--focus", "run$")
	for _, r := range []*running{rec, v} {
		if err := r.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := r.Wait(); err != nil {
			t.Errorf("after Ctrl-C: %v", err)
		}
	}
}
