package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
	"github.com/candid-profiler/candid/internal/store/captures"
)

// TestAgentThreshold runs an agent that captures a service by itself when it has used more CPU than a threshold for
// half a minute, and another one never: the capture is a recording of the service, lies beside the history, and
// the page of the store shows it.
func TestAgentThreshold(t *testing.T) {
	t.Parallel()
	a := startAgent(t, t.TempDir(), `rate: 49
services:
  - {match: {exe: bash, cmdline: 'burner/(\w+)'}, name: 'burner/$1'}
capture:
  when:
    - {service: 'burner/*', cpus: 0.02, for: 30s, duration: 2s, rate: 499, pause: 1h}
    - {service: 'burner/*', cpus: 3, for: 30s, duration: 2s, rate: 299}
`)
	// Some 15 % of a CPU, for half a minute and more.
	burner := spawned(t, exec.Command("bash", "-c", "burn() { for ((i = 0; i < 20000; i++)); do :; done; }; while :; do burn; sleep 0.3; done", "burner/eu"))
	a.saysWithin(3*time.Minute, "more than 0.02 for 30s: capturing it")
	a.says("capture of burner/eu: ")
	began := time.Now()
	list, err := captures.List(filepath.Join(a.dir, "store"), time.Time{}, began.Add(time.Hour))
	if err != nil || len(list) != 1 {
		t.Fatalf("captures %+v, %v; the agent says\n%s", list, err, a.log)
	}
	c := list[0]
	if !c.Of("burner/eu") || c.Service != "burner/eu" || c.Written || c.To.Sub(c.From) < time.Second {
		t.Errorf("the capture is %+v", c)
	}
	top := ok(t, "report", filepath.Join(a.dir, "store", captures.Dir, c.File), "--json")
	var r report.Report
	if err := json.Unmarshal([]byte(top.out), &r); err != nil || r.All.Samples == 0 || !strings.Contains(top.out, "bash") {
		t.Errorf("the capture has %d samples, %v:\n%.1000s", r.All.Samples, err, top.out)
	}
	if s := a.log.String(); strings.Count(s, "capturing it") != 1 || strings.Contains(s, "more than 3 ") {
		t.Errorf("the agent says:\n%s", s)
	}
	a.end()
	if p := a.history("burner/eu"); p.SampleCount() == 0 || !slices.ContainsFunc(p.Processes, func(p profile.Process) bool { return p.PID == burner.Process.Pid }) {
		t.Errorf("the history has %d samples of the service", p.SampleCount())
	}

	v := start(t, exec.Command(binary, "view", "--store", filepath.Join(a.dir, "store")))
	page := v.line(t)
	get := func(path string) (code int, body string) {
		t.Helper()
		res, err := http.Get(page + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	around := url.Values{"from": {fmt.Sprint(c.From.UnixMilli() - 1)}, "to": {fmt.Sprint(c.To.UnixMilli() + 1)}, "service": {"burner/eu"}}
	if code, body := get("captures?" + around.Encode()); code != http.StatusOK || !strings.Contains(body, c.File) {
		t.Errorf("the page's captures: %d, %s", code, body)
	}
	around.Set("service", "burner_eu")
	if code, body := get("captures?" + around.Encode()); code != http.StatusOK || strings.TrimSpace(body) != "[]" {
		t.Errorf("the captures of another service: %d, %s", code, body)
	}
	for path, want := range map[string]int{
		"capture/" + url.PathEscape(c.File) + "/":          http.StatusOK,
		"capture/" + url.PathEscape(c.File) + "/view.js":   http.StatusOK,
		"capture/" + url.PathEscape(c.File) + "/0/tree":    http.StatusOK,
		"capture/" + url.PathEscape("../agent.sock") + "/": http.StatusNotFound,
		"capture/none/": http.StatusNotFound,
	} {
		if code, body := get(path); code != want {
			t.Errorf("%s: %d, want %d: %.200s", path, code, want, body)
		}
	}
}

// TestAgentLimits runs an agent that may use next to nothing: it samples less often, says so, and goes on.
func TestAgentLimits(t *testing.T) {
	t.Parallel()
	a := startAgent(t, t.TempDir(), "rate: 99\nlimits: {cpu: 0.001%, memory: 0}\n")
	spin := spawned(t, exec.Command("bash", "-c", "while :; do for ((i = 0; i < 20000; i++)); do :; done; sleep 0.3; done"))
	a.saysWithin(3*time.Minute, "times less often")
	// On a busy machine the engine may have slowed down by itself before the limit made it.
	s := a.status()
	for end := time.Now().Add(3 * time.Minute); !strings.Contains(s.Why, "its limit is") && time.Now().Before(end); s = a.status() {
		time.Sleep(100 * time.Millisecond)
	}
	if s.Rate > s.RateAsked/2 || s.RateAsked != 99 || !strings.Contains(s.Why, "its limit is") || !s.Ready {
		t.Errorf("status %+v", s)
	}
	works(t, spin.Process.Pid, 100*time.Millisecond)
	a.end()
	if p := a.history("bash"); p.SampleCount() == 0 {
		t.Errorf("nothing is stored; the agent says\n%s", a.log)
	}
}
