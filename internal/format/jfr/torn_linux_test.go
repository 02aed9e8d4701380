package jfr_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/format/jfr"
)

// Whenever candid is ended, the JDK's own reader opens the file, a packed one after unpacking, and
// finds everything that was flushed, with its stacks.
func TestJDKReadsWhenEndedAnywhere(t *testing.T) {
	for _, form := range []string{"plain", "gzip", "zstd"} {
		t.Run(form, func(t *testing.T) { readWhenEnded(t, jfr.TornFiles(form), 1777) })
	}
}

// The zstd program unpacks what is left whenever candid is ended.
func TestZstdUnpacksWhenEndedAnywhere(t *testing.T) {
	zstd := fixture.Tool(t, "zstd")
	dir := t.TempDir()
	want := map[string][]byte{}
	jfr.TornZstd(t, 200, 777, func(name string, b, unpacked []byte) {
		want[name] = bytes.Clone(unpacked)
		if err := os.WriteFile(filepath.Join(dir, name+".zst"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	files, err := filepath.Glob(filepath.Join(dir, "*.zst"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, zstd, append([]string{"-q", "-d"}, files...)...)
	for name, b := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%s: %d bytes, want %d: %v", name, len(got), len(b), err)
		}
	}
	if len(want) < 50 {
		t.Errorf("%d files only", len(want))
	}
}

func readWhenEnded(t *testing.T, files func(testing.TB, int, int, func(string, []byte)), stride int) {
	dir := t.TempDir()
	const n = 200
	count, some := 0, ""
	files(t, n, stride, func(name string, b []byte) {
		count++
		path := filepath.Join(dir, name+".jfr")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if count == 20 {
			some = path
		}
	})
	for _, major := range []int{17, 25} {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			last, seen := 0, 0
			classes := fixture.Classes(t, major, filepath.Join("testdata", "Openable.java"))
			for line := range strings.Lines(run(t, fixture.JDKTool(t, major, "java"), "-cp", classes, "Openable", dir)) {
				name, samples, _ := strings.Cut(strings.TrimSpace(line), "\t")
				seen++
				k, err := strconv.Atoi(samples)
				if err != nil || k < last || k%20 != 0 {
					t.Errorf("%s: %s after %d samples", name, samples, last)
				}
				last = max(last, k)
			}
			if seen != count || last != n {
				t.Errorf("%d of %d files were read, %d samples in the last", seen, count, last)
			}
			// The tool has its own reader of chunks.
			summary := run(t, fixture.JDKTool(t, major, "jfr"), "summary", some)
			if !strings.Contains(summary, "jdk.ExecutionSample") {
				t.Error(summary)
			}

		})
	}
}
