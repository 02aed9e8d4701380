package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
)

// java returns the java launcher of a JDK, "" if the JDK is not installed.
func (b *bench) java(major string) string {
	p := filepath.Join(b.cache, "jdks", major, "bin", "java")
	if _, err := os.Stat(p); err != nil {
		return ""
	}
	return p
}

// compile compiles a workload with a JDK and returns the class path.
func (b *bench) compile(major, source string, flags ...string) (string, error) {
	java := b.java(major)
	if java == "" {
		return "", fmt.Errorf("no JDK %s: scripts/get-jdks.sh", major)
	}
	out := filepath.Join(b.work, major, strings.TrimSuffix(source, ".java"))
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	args := append(flags, "-nowarn", "-d", out, filepath.Join("workloads", source))
	msg, err := exec.Command(filepath.Join(filepath.Dir(java), "javac"), args...).CombinedOutput()
	if err != nil {
		os.RemoveAll(out)
		return "", fmt.Errorf("javac %s: %w: %s", source, err, firstLine(msg))
	}
	return out, nil
}

// recording is the result of one run of candid.
type recording struct {
	profile *profile.Profile
	summary summary
	stdout  string // of the program
}

// summary is the part of `record --json` that the bench reads.
type summary struct {
	All struct {
		Samples float64 `json:"samples"`
	} `json:"all"`
	OwnCPU      float64 `json:"own_cpu_ns"`
	MaxRSS      float64 `json:"max_rss_bytes"`
	FirstWalked float64 `json:"first_walked_ns"`
	TargetCost  float64 `json:"target_cost_ns"`
}

// launch runs a program under candid and reads what was recorded. The program's own output goes to
// a file, because candid's summary is on standard output.
func (b *bench) launch(candid []string, program ...string) (*recording, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	file := filepath.Join(b.work, fmt.Sprintf("r%d.jfr", time.Now().UnixNano()))
	defer os.Remove(file)
	outFile := file + ".out"
	defer os.Remove(outFile)
	args := append([]string{"record", "-q", "--json", "-o", file}, candid...)
	args = append(args, "--", "sh", "-c", `exec "$@" >`+outFile, "sh")
	if !slices.Contains(candid, "--no-jvm-flags") && strings.HasSuffix(program[0], "/java") {
		// The shell hides the java command from candid, so the flags are given here.
		program = append([]string{program[0], "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"}, program[1:]...)
	}
	cmd := exec.CommandContext(ctx, b.candid, append(args, program...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("candid record: %w: %s", err, firstLine(stderr.Bytes()))
	}
	out, err := os.ReadFile(outFile)
	if err != nil {
		return nil, err
	}
	// Standard output belongs to the program, so the summary is on standard error.
	return readRecording(file, stderr.Bytes(), string(out))
}

// attachTo records a running process for some time.
func (b *bench) attachTo(pid int, d time.Duration, candid ...string) (*recording, error) {
	file := filepath.Join(b.work, fmt.Sprintf("r%d.jfr", time.Now().UnixNano()))
	defer os.Remove(file)
	args := append([]string{"record", "-q", "--json", "-o", file, "-d", d.String(), "-p", fmt.Sprint(pid)}, candid...)
	cmd := exec.Command(b.candid, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("candid record: %w: %s", err, firstLine(stderr.Bytes()))
	}
	return readRecording(file, stdout.Bytes(), "")
}

func readRecording(file string, stdout []byte, programOut string) (*recording, error) {
	r := &recording{stdout: programOut}
	if i := bytes.IndexByte(stdout, '{'); i > 0 {
		stdout = stdout[i:]
	}
	if err := json.Unmarshal(stdout, &r.summary); err != nil {
		return nil, fmt.Errorf("candid's summary: %w: %s", err, firstLine(stdout))
	}
	var err error
	r.profile, err = format.Read(file)
	return r, err
}

// program is a running workload.
type program struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// start runs a workload and, if ready is not "", waits until it prints that line.
func start(ready string, argv ...string) (*program, error) {
	p := &program{cmd: exec.Command(argv[0], argv[1:]...)}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if ready == "" {
		return p, nil
	}
	for p.out.Scan() {
		if p.out.Text() == ready {
			return p, nil
		}
	}
	p.stop()
	return nil, errors.New("it ended before it was ready")
}

func (p *program) pid() int { return p.cmd.Process.Pid }

// stop kills the workload; it is only for workloads that are no longer needed.
func (p *program) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return line
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// spread returns the median, the minimum and the maximum.
func spread(v []float64) (median, least, most float64) {
	v = slices.Clone(v)
	slices.Sort(v)
	if len(v) == 0 {
		return
	}
	median = v[len(v)/2]
	if len(v)%2 == 0 {
		median = (v[len(v)/2-1] + v[len(v)/2]) / 2
	}
	return median, v[0], v[len(v)-1]
}

func (b *bench) version() string {
	out, err := exec.Command(b.candid, "version").Output()
	if err != nil {
		return "candid"
	}
	return strings.TrimSpace(string(out))
}

func kernelRelease() string {
	out, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(out))
}

func cpuModel() string {
	out, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "?"
	}
	for line := range strings.Lines(string(out)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return "?"
}

// seconds returns how long a measurement lasts.
func (b *bench) seconds(full int) int {
	if b.quick {
		return max(3, full/5)
	}
	return full
}
