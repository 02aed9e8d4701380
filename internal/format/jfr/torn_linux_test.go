package jfr_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/format/jfr"
)

// Whenever candid is ended, the JDK's own reader opens the file and finds all that
// was flushed, with its stacks.
func TestJDKReadsWhenEndedAnywhere(t *testing.T) { readWhenEnded(t, jfr.TornFiles, 1777) }

// The same of a packed file, when it is unpacked.
func TestJDKReadsPackedWhenEndedAnywhere(t *testing.T) {
	readWhenEnded(t, jfr.TornPackedFiles, 1777)
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
			for line := range strings.Lines(run(t, fixture.JDKTool(t, major, "java"), filepath.Join("testdata", "Openable.java"), dir)) {
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
