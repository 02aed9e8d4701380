package record

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	good := Options{PIDs: []int{1}, Hz: 99, Events: []string{"cpu"}}
	if err := good.Check(); err != nil {
		t.Errorf("good options: %v", err)
	}
	for words, change := range map[string]func(*Options){
		"nothing to record": func(o *Options) { o.PIDs = nil },
		"exclude":           func(o *Options) { o.All = true },
		"0 Hz":              func(o *Options) { o.Hz = 0 },
		"NaN Hz":            func(o *Options) { o.Hz = math.NaN() },
		"+Inf Hz":           func(o *Options) { o.Hz = math.Inf(1) },
		"20001 Hz":          func(o *Options) { o.Hz = MaxHz + 1 },
		"negative":          func(o *Options) { o.Duration = -time.Second },
		`event "wal"`:       func(o *Options) { o.Events = []string{"wal"} },
		"no event":          func(o *Options) { o.Events = nil },
		`engine "x"`:        func(o *Options) { o.Engine = "x" },
	} {
		o := good
		change(&o)
		if err := o.Check(); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}

// fakeJDK makes a directory that looks like a JDK, or like one of another
// virtual machine.
func fakeJDK(t *testing.T, lib string) string {
	t.Helper()
	home := t.TempDir()
	for name, mode := range map[string]os.FileMode{"bin/java": 0o755, lib: 0o644} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(home, "bin", "java")
}

func TestJVMFlags(t *testing.T) {
	hotspot := fakeJDK(t, "lib/server/libjvm.so")
	old := fakeJDK(t, "jre/lib/amd64/server/libjvm.so")
	other := fakeJDK(t, "lib/j9vm/libjvm.so")
	link := filepath.Join(t.TempDir(), "java17")
	if err := os.Symlink(hotspot, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		argv  []string
		added bool
	}{
		{[]string{hotspot, "-jar", "x.jar"}, true},
		{[]string{old, "Main"}, true},
		{[]string{link, "Main"}, true},
		{[]string{other, "Main"}, false},
		{[]string{"sh", "-c", "java"}, false},
		{[]string{"no-such-java"}, false},
		{nil, false},
		{[]string{hotspot, "-XX:+UnlockDiagnosticVMOptions", "-XX:-DebugNonSafepoints", "Main"}, false},
		{[]string{hotspot}, true},
	} {
		got, added := withJVMFlags(c.argv)
		if added != c.added {
			t.Errorf("%v: added %v", c.argv, added)
		}
		want := c.argv
		if c.added {
			want = slices.Concat(c.argv[:1], jvmFlags, c.argv[1:])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v became %v", c.argv, got)
		}
	}
}
