package main

import (
	"bytes"
	"strings"
	"testing"
)

// Shells complete the values of flags.
func TestCompletesValues(t *testing.T) {
	for line, want := range map[string]string{
		"record --engine s":          "suspend",
		"record --event page":        "page-faults",
		"record --event cpu,wa":      "cpu,wall",
		"top --engine a":             "auto",
		"report --view th":           "threads",
		"report --state ":            "sleeping",
		"report --thread-kind java,": "java,compiler",
		"convert --format pp":        "pprof",
		"diff --normalize t":         "total time",
		"diff --format h":            "html",
		"dif":                        "diff",
	} {
		var out bytes.Buffer
		root := newRoot()
		root.SetOut(&out)
		root.SetErr(new(bytes.Buffer))
		root.SetArgs(append([]string{"__complete"}, strings.Split(line, " ")...))
		if err := root.Execute(); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		var got []string
		for l := range strings.Lines(out.String()) {
			word, _, _ := strings.Cut(strings.TrimSpace(l), "\t")
			got = append(got, word)
		}
		if all := " " + strings.Join(got, " ") + " "; !strings.Contains(all, " "+want+" ") {
			t.Errorf("%s: %q, want %q", line, all, want)
		}
	}
}
