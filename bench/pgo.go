package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// compiled is a program that is made faster by a profile of itself.
type compiled struct {
	name string
	dir  string // where it is compiled
	// build returns the command that compiles it to a file, with a profile if there is one.
	build   func(out, profile string) []string
	profile string // extension of the profile
	record  string // argument for a run that is recorded
	measure string // argument for a run that is measured
	bar     string
	// branches says to record with --branches.
	branches bool
}

// pgo compiles programs with and without the profiles that candid makes of them, and compares the
// CPU time that they take.
func (b *bench) pgo() {
	here, err := filepath.Abs("workloads/pgo")
	if err != nil {
		b.add(row{Section: "pgo", What: "all", Failed: err.Error()})
		return
	}
	clang := func(compiler string, sources ...string) func(out, profile string) []string {
		return func(out, profile string) []string {
			args := []string{compiler, "-O2", "-g", "-fdebug-info-for-profiling", "-funique-internal-linkage-names", "-o", out}
			if profile != "" {
				args = append(args, "-fprofile-sample-use="+profile, "-mllvm", "-sample-profile-use-profi")
			}
			return append(append(args, sources...), "-lm", "-lpthread", "-ldl")
		}
	}
	gcc := func(out, profile string) []string {
		args := []string{"g++", "-O2", "-g", "-o", out, "poly.cc"}
		if profile != "" {
			args = append(args, "-fauto-profile="+profile)
		}
		return args
	}
	goes := func(out, profile string) []string {
		if profile == "" {
			profile = "off"
		}
		return []string{"go", "build", "-trimpath", "-ldflags=-s -w", "-pgo=" + profile, "-o", out, "."}
	}
	rust := func(out, profile string) []string {
		args := []string{"rustc", "-O", "-g", "-Ccodegen-units=1", "-Csymbol-mangling-version=v0", "-Zdebug-info-for-profiling", "-o", out, "poly.rs"}
		if profile != "" {
			args = append(args, "-Zprofile-sample-use="+profile)
		}
		return args
	}
	b.faster(compiled{"calls through tables of methods and pointers, clang", here, clang("clang++", "poly.cc"), "prof", "30000", "2000", "≤ 0.170", false})
	b.faster(compiled{"the same, gcc", here, gcc, "gcov", "20000", "2000", "≤ 0.396", false})
	b.faster(compiled{"the same, rustc", here, rust, "prof", "40000", "4000", "≤ 0.655", false})
	b.faster(compiled{"calls through interfaces and functions, Go", filepath.Join(here, "poly"), goes, "pgo", "20000", "1000", "≤ 0.338", false})
	b.faster(compiled{"encoding/json, Go", filepath.Join(here, "json"), goes, "pgo", "3000", "150", "≤ 0.908", false})
	sqlite, err := b.sqlite(here)
	if err != nil {
		b.add(row{Section: "pgo", What: "SQLite, a mix of queries, clang", Failed: err.Error()})
		return
	}
	b.faster(compiled{"SQLite, a mix of queries, clang", sqlite, clang("clang", "sqlite.c", "sqlite3.c"), "prof", "100", "4", "≤ 0.96", false})
	b.faster(compiled{"SQLite, a mix of queries, clang, with branches by emulation", sqlite, clang("clang", "sqlite.c", "sqlite3.c"), "prof", "100", "4", "≤ 0.94", true})
}

// sqlite returns a directory with SQLite's source, which a module of Go's has.
func (b *bench) sqlite(here string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", "github.com/mattn/go-sqlite3@v1.14.32")
	cmd.Dir = b.work
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("get SQLite's source: %w", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", err
	}
	dir := filepath.Join(b.work, "sqlite")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for to, from := range map[string]string{
		"sqlite3.c": filepath.Join(module.Dir, "sqlite3-binding.c"), "sqlite3.h": filepath.Join(module.Dir, "sqlite3-binding.h"),
		"sqlite.c": filepath.Join(here, "sqlite.c"),
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, to), text, 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// faster measures one program.
func (b *bench) faster(c compiled) {
	r := row{Section: "pgo", What: "CPU time with candid's profile, as a part of that without: " + c.name, Unit: "×", Bar: c.bar}
	defer func() { b.add(r) }()
	plain, better := filepath.Join(b.work, "plain"), filepath.Join(b.work, "better")
	jfr, profile := filepath.Join(b.work, "pgo.jfr"), filepath.Join(b.work, "pgo."+c.profile)
	run := func(argv ...string) (string, error) {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = c.dir
		cmd.Env = append(os.Environ(), "RUSTC_BOOTSTRAP=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w: %.300s", filepath.Base(argv[0]), err, out)
		}
		return string(out), err
	}
	said := ""
	for _, argv := range [][]string{
		c.build(plain, ""),
		{b.candid, "record", "-q", fmt.Sprintf("--branches=%v", c.branches), "--force", "-F", "1000", "-o", jfr, "--", plain, c.record},
		{b.candid, "pgo", jfr, "--force", "-o", profile},
		c.build(better, profile),
	} {
		out, err := run(argv...)
		if err != nil {
			r.Failed = err.Error()
			return
		}
		if argv[1] == "pgo" {
			said, _, _ = strings.Cut(strings.TrimPrefix(out, "candid: "), ";")
		}
	}
	r.Runs = 15
	if b.quick {
		r.Runs = 3
	}
	var parts []float64
	for range r.Runs {
		var took [2]float64
		for i, program := range []string{plain, better} {
			cmd := exec.Command(program, c.measure)
			if err := cmd.Run(); err != nil {
				r.Failed = err.Error()
				return
			}
			took[i] = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		}
		parts = append(parts, took[1]/took[0])
	}
	r.Value, r.Min, r.Max = spread(parts)
	r.Note = said
}
