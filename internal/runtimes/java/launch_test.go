package java

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fakeJDK makes a directory that looks like a JDK, or like that of another virtual machine.
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
		got, said := withFlags(c.argv)
		added := said != ""
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
