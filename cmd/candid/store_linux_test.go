package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/report"
	"github.com/candid-profiler/candid/internal/store"
)

// storedJava returns a store in which two services ran for ten seconds, an hour ago and a day before
// that, and when the later ten seconds began.
func storedJava(t *testing.T) (dir string, at time.Time) {
	t.Helper()
	dir = t.TempDir()
	w, err := store.Create(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at = time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, begin := range []time.Time{at.AddDate(0, 0, -1), at} {
		for i, name := range []string{"shop", "mail"} {
			p := profiletest.Java()
			p.Meta.Start = begin
			from := begin.Add(time.Duration(i) * 20 * time.Second)
			if name == "mail" {
				p = profile.Apply(p, profile.Filter{To: time.Second})
			}
			if err := w.Append(p, func(int) string { return name }, from, from.Add(10*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, at
}

// TestStoreCommands asks a store by every command that reads recordings.
func TestStoreCommands(t *testing.T) {
	dir, at := storedJava(t)
	minute := []string{"--store", dir, "--from", at.Format(time.RFC3339), "--to", at.Add(time.Minute).Format(time.RFC3339)}
	with := func(command string, more ...string) []string {
		return append(append([]string{command}, minute...), more...)
	}
	read := func(args []string) (r report.Report) {
		t.Helper()
		if err := json.Unmarshal([]byte(ok(t, append(args, "--json")...).out), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := read(with("report"))
	if len(r.Services) != 2 || r.Services[0].Name != "shop" || r.Services[1].Name != "mail" || r.Services[0].Share < 0.8 || r.All.Samples != 10999 {
		t.Errorf("services %+v of %d samples", r.Services, r.All.Samples)
	}
	if text := ok(t, with("report")...).out; strings.Index(text, "shop") < 0 || strings.Index(text, "shop") > strings.Index(text, "mail") || strings.Index(text, "mail") > strings.Index(text, "METHOD") {
		t.Errorf("the report does not begin with the services:\n%s", text)
	}
	// The same as of the file that was stored.
	file := written(t, "java.jfr", profiletest.Java())
	var one report.Report
	if err := json.Unmarshal([]byte(ok(t, "report", "--json", file).out), &one); err != nil {
		t.Fatal(err)
	}
	r = read(with("report", "--service", "shop"))
	if r.Services != nil || r.All != one.All || len(r.Methods) != len(one.Methods) || r.Methods[0].Name != one.Methods[0].Name || r.Methods[0].Self != one.Methods[0].Self {
		t.Errorf("the service has %+v, the file %+v", r.All, one.All)
	}
	if r := read([]string{"report", "--store", dir, "--service", "shop"}); r.All.Samples != 2*one.All.Samples {
		t.Errorf("all that is stored of the service are %d samples, want %d", r.All.Samples, 2*one.All.Samples)
	}
	if r := read([]string{"report", "--store", dir, "--service", "shop", "--from", "-2h", "--to", "now"}); r.All.Samples != one.All.Samples {
		t.Errorf("the last two hours of the service are %d samples, want %d", r.All.Samples, one.All.Samples)
	}
	out := written(t, "old.jfr", profiletest.Java())
	ok(t, with("convert", "--service", "mail", "-o", out, "--force")...)
	if err := json.Unmarshal([]byte(ok(t, "report", "--json", out).out), &one); err != nil || one.All.Samples != 999 {
		t.Errorf("converted %d samples, %v", one.All.Samples, err)
	}
	for _, base := range [][]string{{"--against", "yesterday"}, {"--against", "24h"}, {"--base-from", at.AddDate(0, 0, -1).Format(time.RFC3339)}} {
		text := ok(t, append(with("diff", "--service", "shop"), base...)...).out
		if !strings.Contains(text, "shop, "+at.AddDate(0, 0, -1).Format("2006-01-02")) {
			t.Errorf("diff %q:\n%s", base, text)
		}
	}
	candid(t, with("report", "--service", "shops")...).refused(t, exitNoSamples, "shops", "no samples", "shop, mail")
	candid(t, "report", "--store", dir, "--from", "-10m").refused(t, exitNoSamples, "no samples", at.Format("15:04:05"))
	candid(t, with("diff", "--service", "shop")...).refused(t, exitNoSamples, "no samples")
	candid(t, "report", "--store", t.TempDir()).refused(t, exitFailed, "not a store")
	candid(t, "report", "--store", dir, "--from", "soon").refused(t, exitUsage, "--from", "soon", "-1h")
	candid(t, "report", "--store", dir, "--from", "-1h", "--to", "-2h").refused(t, exitUsage, "no stretch of time")
	candid(t, "report", "--store", dir, file).refused(t, exitUsage, file)
	candid(t, "report", "--service", "shop", file).refused(t, exitUsage, "--store", "--process")
	candid(t, "diff", "--against", "yesterday", file, file).refused(t, exitUsage, "--store")
	candid(t, with("diff", "--against", "soon")...).refused(t, exitUsage, "soon", "yesterday")
}
