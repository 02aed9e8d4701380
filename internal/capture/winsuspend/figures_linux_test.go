package winsuspend_test

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
)

// mingw builds a C program of testdata for Windows.
func mingw(t *testing.T, file string) string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(filepath.Base(file), ".c") + ".exe"
	return fixture.MinGW(t, "x86_64-w64-mingw32-gcc", name, string(source), "-O2")
}

// A recording ends when its duration has passed: from the moment at which candid.exe says how it
// samples to its end, with the file written.
func TestOnTime(t *testing.T) {
	exe, pid, dir := candidExe(t), spin(t, 300), t.TempDir()
	const length, apart = 2 * time.Second, 200 * time.Millisecond
	fixture.Attempts(t, 7, func() (late string) {
		c := fixture.Wine(t, exe, "record", "-p", strconv.Itoa(pid), "-d", "2s", "-e", "cpu,wall", "--force", "-o", "t.jfr")
		c.Dir = dir
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stdout, c.Stderr = w, w
		if err := fixture.Spawn(c); err != nil {
			t.Fatal(err)
		}
		w.Close()
		stuck := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
		defer stuck.Stop()
		var begun time.Time
		var said []string
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if said = append(said, lines.Text()); strings.Contains(lines.Text(), "threads suspended for a copy") {
				begun = time.Now()
			}
		}
		err = c.Wait()
		took := time.Since(begun)
		if err != nil || begun.IsZero() {
			t.Fatalf("%v:\n%s", err, strings.Join(said, "\n"))
		}
		t.Logf("-d %v took %v", length, took.Round(time.Millisecond))
		if took < length-apart || took > length+apart {
			return fmt.Sprintf("-d %v took %v:\n%s", length, took, strings.Join(said, "\n"))
		}
		return ""
	})
}

// truth are the shares of testdata/split.c.
var truth = map[string]float64{"phase_a": 0.35, "phase_b": 0.25, "phase_c": 0.2, "phase_d": 0.12, "phase_e": 0.08}

// distance returns the total variation distance of weights by function from the truth, and the share
// of all weight that is in these functions.
func distance(seen map[string]float64, all float64) (tvd, share float64) {
	sum := 0.0
	for _, w := range seen {
		sum += w
	}
	for name, is := range truth {
		tvd += math.Abs(seen[name]/sum-is) / 2
	}
	return tvd, sum / all
}

// phaseOf returns the phase that a stack is in, "" if it is in none.
func phaseOf(stack string) string {
	at := strings.Index(stack, "phase_")
	if at < 0 {
		return ""
	}
	return stack[at : at+len("phase_a")]
}

// A program's time is split as it is known to be, by candid.exe and by candid from outside.
func TestTruth(t *testing.T) {
	fixture.OnlyFull(t, "TestRecordNative")
	exe, dir := candidExe(t), t.TempDir()
	prog := mingw(t, "testdata/split.c")
	fixture.Attempts(t, 3, func() (wrong string) {
		c := fixture.Wine(t, prog, "150")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := fixture.Spawn(c); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		}()
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		pid := strings.TrimSpace(line)
		_, errs, code := wine(t, dir, exe, "record", "-p", pid, "-d", "60s", "-F", "200", "--force", "-o", "s.collapsed")
		if code != 0 {
			t.Fatalf("exit code %d\n%s", code, errs)
		}
		seen, all := map[string]float64{}, 0.0
		for stack, n := range collapsed(t, filepath.Join(dir, "s.collapsed")) {
			all += float64(n)
			if name := phaseOf(stack); name != "" {
				seen[name] += float64(n)
			}
		}
		inside, in := distance(seen, all)
		r, err := record.Run(t.Context(), record.Options{PIDs: []int{c.Process.Pid}, Duration: 60 * time.Second, Hz: 200, Events: []string{"cpu"}, Log: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		p := r.Profile
		seen, all = map[string]float64{}, 0
		for i := range p.Samples {
			s := &p.Samples[i]
			all += float64(s.Weight)
			for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
				if name := p.Funcs[p.Frames[p.Nodes[n].Frame].Func].Name; truth[name] != 0 {
					seen[name] += float64(s.Weight)
					break
				}
			}
		}
		outside, out2 := distance(seen, all)
		t.Logf("total variation distance: candid.exe %.2f %% (%.2f %% of the time in the phases), candid on Linux %.2f %% (%.2f %%)", 100*inside, 100*in, 100*outside, 100*out2)
		if !(inside <= 0.01) || !(outside <= 0.005) || in < 0.98 || out2 < 0.98 {
			return fmt.Sprintf("total variation distance: candid.exe %.3f, candid on Linux %.3f; in the phases %.3f and %.3f", inside, outside, in, out2)
		}
		return ""
	})
}

// A thread is suspended for hardly longer than the four calls take that have to be made.
func TestStopTime(t *testing.T) {
	prog, pid := buildWindows(t, "./testdata/stops"), spin(t, 1800) // on a busy machine a round takes up to a tenth of a second
	fixture.Attempts(t, 3, func() (wrong string) {
		out, errs, code := wine(t, t.TempDir(), prog, strconv.Itoa(pid), "1000")
		var took [3][2]time.Duration // 10th percentile, median, 99th percentile: candid, the calls alone
		var bytes int
		into := []any{}
		for i := range took {
			into = append(into, (*int64)(&took[i][0]), (*int64)(&took[i][1]))
		}
		if _, err := fmt.Sscan(out, append(into, &bytes)...); code != 0 || err != nil {
			t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
		}
		text := fmt.Sprintf("suspended for a copy of %d bytes: 10 %% within %v (the calls alone %v), median %v (%v), 99 %% within %v (%v)",
			bytes, took[0][0], took[0][1], took[1][0], took[1][1], took[2][0], took[2][1])
		t.Log(text)
		// Other tests run beside this one; work that does not belong there takes longer than the calls.
		if candid, alone := took[1][0], took[1][1]; candid > alone+max(10*time.Microsecond, alone/2) {
			return text
		}
		return ""
	})
}

// Code that a program generates is walked by the unwind data that it registers for it.
func TestGeneratedCode(t *testing.T) { recordGenerated(t) }

// Code whose unwind data only the program can compute is walked by reading it, and candid says so.
func TestComputedTables(t *testing.T) {
	fixture.OnlyFull(t, "TestGeneratedCode")
	if errs := recordGenerated(t, "computed"); !strings.Contains(errs, "the unwind data of 1 range of its generated code itself (RtlInstallFunctionTableCallback)") {
		t.Errorf("candid does not say that the program computes its tables:\n%s", errs)
	}
}

// recordGenerated records a program that generates code, and returns what candid printed.
func recordGenerated(t *testing.T, how ...string) (errs string) {
	t.Helper()
	pid := startWine(t, append([]string{mingw(t, "../../native/testdata/windows/generated.c"), "60"}, how...)...)
	return recordCallers(t, t.TempDir(), pid, "g.collapsed", "leaf", func(stack string) bool {
		frames := strings.Split(stack, ";")
		k := len(frames)
		return k > 5 && strings.HasPrefix(frames[k-2], "[anon]") && strings.HasPrefix(frames[k-3], "[anon]") && frames[k-4] == "computes" && frames[k-5] == "main" && strings.Contains(stack, "RtlUserThreadStart")
	})
}
