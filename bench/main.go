// Command bench measures what candid promises, on the machine it runs on: how true its profiles
// are, how many stacks are complete, and what it costs the target and itself. Every figure is
// measured in this run, interleaved with what it is compared with; medians are given with their
// spread.
//
//	go run ./bench [-only truth,callers] [-quick]
//
// The table goes to standard output and to bench/results/.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// row is one line of the table.
type row struct {
	Section string  `json:"section"`
	What    string  `json:"what"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Min     float64 `json:"min,omitempty"` // spread over the runs
	Max     float64 `json:"max,omitempty"`
	Runs    int     `json:"runs,omitempty"`
	Bar     string  `json:"bar,omitempty"` // the requirement
	Note    string  `json:"note,omitempty"`
	Failed  string  `json:"failed,omitempty"` // why it could not be measured
}

// bench is a run of the benchmark.
type bench struct {
	quick  bool
	candid string // path of the binary
	work   string // scratch directory
	cache  string // directory of the JDKs and programs
	rows   []row
}

var sections = []struct {
	name string
	run  func(*bench)
}{
	{"truth", (*bench).truth},
	{"inline", (*bench).inline},
	{"callers", (*bench).callers},
	{"dotnet", (*bench).dotnet},
	{"real", (*bench).real},
	{"cost", (*bench).cost},
	{"attach", (*bench).attach},
	{"short", (*bench).short},
	{"busy", (*bench).busy},
	{"threads", (*bench).shortThreads},
	{"timers", (*bench).timers},
	{"suspend", (*bench).suspend},
	{"suspend-cost", (*bench).suspendCost},
	{"copy-cost", (*bench).copyCost},
	{"gaps", (*bench).gaps},
	{"events", (*bench).events},
	{"waits", (*bench).waits},
	{"dump", (*bench).dump},
	{"edges", (*bench).edges},
	{"convert", (*bench).convert},
	{"view", (*bench).view},
	{"pgo", (*bench).pgo},
}

func main() {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	only := flag.String("only", "", "sections to run, comma-separated: "+strings.Join(names, ", "))
	quick := flag.Bool("quick", false, "shorter and fewer runs: the figures are rough")
	candid := flag.String("candid", "./candid", "the binary to measure")
	flag.Parse()

	b := &bench{quick: *quick, cache: os.Getenv("CANDID_RUNTIMES")}
	if b.cache == "" {
		home, err := os.UserHomeDir()
		check(err)
		b.cache = filepath.Join(home, ".cache", "candid-runtimes")
	}
	var err error
	b.candid, err = filepath.Abs(*candid)
	check(err)
	b.work, err = os.MkdirTemp("", "candid-bench-")
	check(err)
	defer os.RemoveAll(b.work)

	wanted := func(name string) bool {
		return *only == "" || strings.Contains(","+*only+",", ","+name+",")
	}
	start := time.Now()
	for _, s := range sections {
		if wanted(s.name) {
			fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format("15:04:05"), s.name)
			s.run(b)
			if !*quick { // results stay if a later section is cut off
				check(b.save(start))
			}
		}
	}
	fmt.Print(b.table(time.Since(start)))
}

func (b *bench) add(r row) {
	b.rows = append(b.rows, r)
	if r.Failed != "" {
		fmt.Fprintf(os.Stderr, "  %s: not measured: %s\n", r.What, r.Failed)
		return
	}
	fmt.Fprintf(os.Stderr, "  %s: %s %s\n", r.What, number(r.Value), r.Unit)
}

func number(v float64) string {
	switch a := max(v, -v); {
	case a == 0:
		return "0"
	case a > 99.9 && a < 100: // nearly all is not shown as all
		return fmt.Sprintf("%.4f", max(min(v, 99.9999), -99.9999))
	case a >= 1000:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

// table prints the rows as a Markdown table.
func (b *bench) table(took time.Duration) string {
	var s strings.Builder
	fmt.Fprintf(&s, "# Measured %s\n\n", time.Now().UTC().Format("2006-01-02 15:04 MST"))
	fmt.Fprintf(&s, "%s; %d CPUs, %s, Linux %s; the run took %s.\n\n", b.version(), runtime.NumCPU(), cpuModel(), kernelRelease(), took.Round(time.Second))
	fmt.Fprintln(&s, "| section | what | measured | spread | runs | bar | note |\n|---|---|---|---|---|---|---|")
	for _, r := range b.rows {
		value, spread := number(r.Value)+" "+r.Unit, ""
		if r.Runs > 1 {
			spread = number(r.Min) + " to " + number(r.Max)
		}
		if r.Failed != "" {
			value = "not measured: " + r.Failed
		}
		runs := ""
		if r.Runs > 0 {
			runs = fmt.Sprint(r.Runs)
		}
		fmt.Fprintf(&s, "| %s | %s | %s | %s | %s | %s | %s |\n", r.Section, r.What, value, spread, runs, r.Bar, r.Note)
	}
	return s.String()
}

// save stores the table and the rows under bench/results, named by the start of the run.
func (b *bench) save(start time.Time) error {
	base := filepath.Join("bench", "results", start.UTC().Format("20060102-1504"))
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(base+".md", []byte(b.table(time.Since(start))), 0o644); err != nil {
		return err
	}
	j, err := json.MarshalIndent(b.rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(base+".json", append(j, '\n'), 0o644)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
