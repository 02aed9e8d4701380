package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
)

// in returns how many samples a file has, 0 if it cannot be read.
func in(file string) int {
	p, err := format.Read(file)
	if err != nil {
		return 0
	}
	return len(p.Samples)
}

// The file contains everything that was recorded until candid was killed, both for candid and for
// the JDK's tool.
func TestKilledRecording(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"x.jfr", "x.jfr.gz", "x.jfr.zst"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killedRecording(t, name)
		})
	}
}

func killedRecording(t *testing.T, name string) {
	able(t)
	target := program(t, "tick")
	c := command(t, "record", "-q", "-F", "500", "-p", target.pid(), "-o", name)
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(c.Dir, name)
	await(t, "a second flush", func() bool {
		n := in(file)
		return n > 0 && c.ProcessState == nil && grown(file, n)
	})
	seen := in(file)
	if r := ok(t, "report", file); !strings.Contains(r.out, "note: this recording is still being written: these are its first ") || strings.Contains(r.out, "not finished") {
		t.Errorf("while it is written: %s", r.out)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.Wait()
	unharmed(t, target)
	notFinished(t, file)
	if left, _ := filepath.Glob(filepath.Join(c.Dir, ".candid*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	n := in(file)
	if n == 0 || n < seen {
		t.Fatalf("%d samples, %d were there before", n, seen)
	}
	if r := ok(t, "report", file); !strings.Contains(r.out, "spinUntil") || !strings.Contains(r.out, "perf events") {
		t.Errorf("%s", r.out)
	}
	if p, err := format.Read(file); err == nil && len(p.Meta.Notes) > 0 && strings.Contains(p.Meta.Notes[len(p.Meta.Notes)-1], "cut off") {
		// It was killed during a write: candid skips what others refuse.
		whole := filepath.Join(c.Dir, "whole.jfr")
		ok(t, "convert", file, "-o", whole)
		file = whole
	}
	switch filepath.Ext(file) {
	case ".gz":
		file = gunzipped(t, file)
	case ".zst":
		packed := file
		file = strings.TrimSuffix(file, ".zst")
		if out, err := exec.Command(fixture.Tool(t, "zstd"), "-q", "-d", packed, "-o", file).CombinedOutput(); err != nil {
			t.Fatalf("zstd: %v\n%s", err, out)
		}
	}
	out, err := exec.Command(fixture.JDKTool(t, 17, "jfr"), "summary", file).CombinedOutput()
	if m := regexp.MustCompile(`jdk\.ExecutionSample +(\d+)`).FindSubmatch(out); err != nil || m == nil || string(m[1]) != strconv.Itoa(n) {
		t.Errorf("%d samples, but the JDK says %v\n%s", n, err, out)
	}
}

// notFinished fails if candid does not report that a recording was not finished.
func notFinished(t *testing.T, file string) {
	t.Helper()
	p, err := format.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	note := fmt.Sprintf("this recording was not finished: it holds the first %v", p.Meta.Duration.Round(100*time.Millisecond))
	if r := ok(t, "report", file); !strings.Contains(r.out, "note: "+note) {
		t.Errorf("%q is not in\n%s", note, r.out)
	}
	var report struct {
		Notes      []string `json:"notes"`
		Unfinished bool     `json:"unfinished"`
	}
	if r := ok(t, "report", "--json", file); json.Unmarshal([]byte(r.out), &report) != nil || !report.Unfinished || !slices.Contains(report.Notes, note) {
		t.Errorf("JSON: %+v", report)
	}
	// Files made from it say so too, and only once; they are complete files themselves.
	for _, name := range []string{"cut.jfr", "cut.pb.gz", "cut.speedscope.json"} {
		out := filepath.Join(t.TempDir(), name)
		ok(t, "convert", file, "-o", out)
		if r := ok(t, "report", out); strings.Count(r.out, note) != 1 {
			t.Errorf("%s: %s", name, r.out)
		}
	}
}

// gunzipped unpacks a file as far as possible: if candid was killed during a write, it may end in
// something that is not packed data.
func gunzipped(t *testing.T, file string) string {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil && !errors.Is(err, gzip.ErrHeader) {
		t.Fatal(err)
	}
	out := strings.TrimSuffix(file, ".gz")
	if err := os.WriteFile(out, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// grown waits a moment until a file has more than n samples.
func grown(file string, n int) bool {
	for range 50 {
		if in(file) > n {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// A recording that is killed contains sleeps that had not ended; so does a file cut out of a
// stretch of its time.
func TestKilledSleeps(t *testing.T) {
	t.Parallel()
	able(t)
	for _, how := range [][2]string{{"auto", "wall"}, {"auto", "off-cpu"}, {"suspend", "wall"}} {
		t.Run(how[0]+" "+how[1], func(t *testing.T) {
			t.Parallel()
			sleeper := exec.Command("sleep", "600")
			if err := fixture.Spawn(sleeper); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { sleeper.Process.Kill(); sleeper.Wait() })
			pid := strconv.Itoa(sleeper.Process.Pid)
			comm := func() string { b, _ := os.ReadFile("/proc/" + pid + "/comm"); return strings.TrimSpace(string(b)) }
			await(t, "sleep", func() bool { return comm() == "sleep" })
			c := command(t, "record", "-q", "--engine", how[0], "-e", how[1], "-p", pid, "-o", "x.jfr")
			var errs strings.Builder
			c.Stderr = &errs
			if err := fixture.Spawn(c); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(c.Dir, "x.jfr")
			slept := func(file string) (all time.Duration) {
				p, err := format.Read(file)
				if err != nil {
					return 0
				}
				for i := range p.Samples {
					all += time.Duration(p.Samples[i].Weight)
				}
				return all
			}
			await(t, "four seconds of sleep", func() bool {
				if exited(c.Process.Pid) {
					c.Wait()
					t.Skipf("recording is not possible here: %s", errs.String())
				}
				return slept(file) > 4*time.Second
			})
			seen := slept(file)
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			c.Wait()
			if all := slept(file); all < seen {
				t.Errorf("%v, but %v were there before", all, seen)
			}
			cut := filepath.Join(c.Dir, "cut.jfr")
			ok(t, "convert", "--from", "1s", "--to", "3s", file, "-o", cut)
			p, err := format.Read(cut)
			if err != nil {
				t.Fatal(err)
			}
			// Attaching may have taken a part of it.
			if got := slept(cut); got > 2*time.Second || got == 0 {
				t.Errorf("%v of two seconds", got)
			}
			if p.Meta.Duration != 2*time.Second || p.Meta.Cost.Samples == 0 && p.Meta.Cost != (profile.Cost{}) {
				t.Errorf("two seconds of it are %v long and cost %+v", p.Meta.Duration, p.Meta.Cost)
			}
		})
	}
}

// exited reports whether a child that nobody has waited for has ended.
func exited(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(b), ") ")
	return err != nil || strings.HasPrefix(after, "Z")
}

// The file grows during the recording, less than a second behind.
func TestStreamingKeepsUp(t *testing.T) {
	out := &output{path: filepath.Join(t.TempDir(), "x.jfr"), name: "jfr", flags: &outputFlags{}}
	s := newStreaming(out, func(line string) { t.Error(line) })
	b := profile.NewBuilder()
	s.Begin(record.Begun{Start: time.Now(), Events: []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1e6}}})
	thread := b.Thread(1, 1, "main")
	for i := range 100 {
		s.Sample(b, profile.Sample{Time: uint64(i) * 1e6, Weight: 1e6, Thread: thread, State: profile.StateRunning})
		if i%10 == 9 {
			s.flushed = time.Now().Add(-flushEvery) // as if some time had passed
			s.Batch(b, record.Progress{})
			if n := in(out.path); n != i+1 {
				t.Fatalf("%d samples are in the file, %d were taken", n, i+1)
			}
		}
	}
	if flushEvery > 800*time.Millisecond {
		t.Error("with what a batch takes this is more than a second")
	}
	if _, err := s.finish(b.Finish()); err != nil {
		t.Error(err)
	}
}

// A file that appeared in the meantime is not overwritten.
func TestStreamingOverwritesNothing(t *testing.T) {
	able(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	out := &output{path: filepath.Join(t.TempDir(), "x.jfr"), name: "jfr", flags: &outputFlags{}}
	told := ""
	s := newStreaming(out, func(line string) { told += line })
	if err := os.WriteFile(out.path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := profile.NewBuilder()
	s.Begin(record.Begun{Start: time.Now()})
	s.Batch(b, record.Progress{})
	_, err := s.finish(b.Finish())
	if data, _ := os.ReadFile(out.path); err == nil || string(data) != "mine" || !strings.Contains(told, "exists") || !strings.Contains(err.Error(), dir) {
		t.Errorf("%q, %v, told %q", data, err, told)
	}
}

// A recording whose file is removed, or replaced by another file, is not lost, and candid does not
// claim the other file as its own.
func TestStreamingLosesItsName(t *testing.T) {
	for _, name := range []string{"jfr", "jfr.gz", "jfr.zst"} {
		for what, loses := range map[string]func(path string) error{
			"removed": os.Remove,
			"replaced": func(path string) error {
				return errors.Join(os.Remove(path), os.WriteFile(path, []byte("mine"), 0o600))
			},
		} {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			out := &output{path: filepath.Join(t.TempDir(), "x."+name), name: name, flags: &outputFlags{}}
			told := ""
			s := newStreaming(out, func(line string) { told += line })
			b := profile.NewBuilder()
			s.Begin(record.Begun{Start: time.Now(), Events: []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1e6}}})
			thread := b.Thread(1, 1, "main")
			sample := func(n int) {
				for range n {
					s.Sample(b, profile.Sample{Time: 1e6, Weight: 1e6, Thread: thread, State: profile.StateRunning})
				}
				s.flushed = time.Time{}
				s.Batch(b, record.Progress{})
			}
			sample(30)
			if n := in(out.path); n != 30 {
				t.Fatalf("%d samples are in the file", n)
			}
			if err := loses(out.path); err != nil {
				t.Fatal(err)
			}
			sample(12)
			path, err := s.finish(b.Finish())
			switch what {
			case "removed":
				if err != nil || path != out.path || in(path) != 42 || !strings.Contains(told, "was removed") {
					t.Errorf("%s, %s: %d samples in %q, %v, told %q", name, what, in(path), path, err, told)
				}
			case "replaced":
				kept, _ := filepath.Glob(filepath.Join(dir, "x-*."+name))
				if data, _ := os.ReadFile(out.path); string(data) != "mine" || err == nil || len(kept) != 1 || in(kept[0]) != 42 || !strings.Contains(err.Error(), kept[0]) {
					t.Errorf("%s, %s: %v, kept %q, in its place %q", name, what, err, kept, data)
				}
			}
		}
	}
}

// A recording whose file is truncated by somebody else is not reported as written. The samples in
// memory, or their sums, are saved elsewhere, and the file is left as it is.
func TestStreamingIsCutOff(t *testing.T) {
	for _, name := range []string{"jfr", "jfr.gz", "jfr.zst"} {
		for _, later := range []int{0, 12} { // samples added after it
			for _, keep := range []profile.Keep{profile.KeepSamples, profile.KeepSums} {
				dir := t.TempDir()
				t.Setenv("TMPDIR", dir)
				out := &output{path: filepath.Join(t.TempDir(), "x."+name), name: name, flags: &outputFlags{}}
				told := ""
				s := newStreaming(out, func(line string) { told += line })
				b := profile.NewBuilder()
				b.Keep(keep)
				s.Begin(record.Begun{Start: time.Now(), Events: []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1e6}}})
				thread := b.Thread(1, 1, "main")
				sample := func(n int) {
					for range n {
						one := profile.Sample{Time: 1e6, Weight: 1e6, Thread: thread, State: profile.StateRunning}
						s.Sample(b, one)
						b.Add(one)
					}
					s.flushed = time.Time{}
					s.Batch(b, record.Progress{})
				}
				sample(30)
				if n := in(out.path); n != 30 {
					t.Fatalf("%d samples are in the file", n)
				}
				if err := os.Truncate(out.path, 1000); err != nil {
					t.Fatal(err)
				}
				if later > 0 {
					sample(later)
					if !strings.Contains(told, "truncated") {
						t.Errorf("%s: told %q", name, told)
					}
				}
				p := b.Finish()
				p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1e6}}
				_, err := s.finish(p)
				ext, n := name, 30+later
				if keep == profile.KeepSums {
					ext = "pb.gz"
				}
				kept, _ := filepath.Glob(filepath.Join(dir, "x-*"))
				var coded *codedError
				if !errors.As(err, &coded) || coded.code != exitFailed || len(kept) != 1 || !strings.HasSuffix(kept[0], ext) || !strings.Contains(err.Error(), kept[0]) || in(kept[0]) != n {
					t.Errorf("%s, %d samples later, kept as %d: %v, kept %q", name, later, keep, err, kept)
				}
				if st, err := os.Stat(out.path); err != nil || st.Size() != 1000 {
					t.Errorf("%s: the file has %v, %v", name, st, err)
				}
			}
		}
	}
}

// Only some threads are kept, but nothing is lost if candid is killed before it knows their names.
func TestStreamingOfSomeThreads(t *testing.T) {
	able(t)
	pid := program(t, "spin").pid()
	var c *exec.Cmd
	var r result
	for _, long := range forLong {
		c = command(t, "record", "-q", "-F", "500", "-d", long, "-p", pid, "--thread", "no such thread", "-o", "x.jfr")
		if r = finish(t, c); ran(r) {
			break
		}
	}
	if r.code != exitNoSamples {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	p, err := format.Read(filepath.Join(c.Dir, "x.jfr"))
	if err != nil || len(p.Samples) != 0 {
		t.Errorf("%v, %v", p, err)
	}
}

// If the disk fills up, the file holds what fitted, and everything is saved elsewhere.
func TestDiskFillsUp(t *testing.T) {
	t.Parallel()
	able(t)
	root(t)
	dir, tmp := t.TempDir(), t.TempDir()
	pid := program(t, "spin").pid()
	// The disk is filled when the file holds samples.
	script := fmt.Sprintf(`mount -t tmpfs -o size=1m none %[1]s || exit 77
TMPDIR=%[2]s %[3]s record -q -F 5000 -p %[4]s -o %[1]s/x.jfr & recording=$!
until %[3]s report %[1]s/x.jfr > /dev/null 2>&1; do kill -0 $recording || break; sleep 0.02; done
cat /dev/zero > %[1]s/fill 2> /dev/null
sleep 2 # for steps that do not fit
kill -INT $recording
wait $recording; code=$?; cp %[1]s/x.jfr %[2]s/part; exit $code`, dir, tmp, binary, pid)
	c := command(t)
	path := fixture.Tool(t, "unshare")
	c.Path, c.Args = path, []string{"unshare", "-m", "sh", "-c", script}
	r := finish(t, c)
	if r.code == 77 || strings.Contains(r.err, "unshare failed") {
		t.Skip("mounting is not possible here: " + r.err)
	}
	r.refused(t, exitFailed, dir+"/x.jfr", "no space left on device", "it holds the first", tmp)
	kept, _ := filepath.Glob(filepath.Join(tmp, "*.jfr"))
	if len(kept) != 1 {
		t.Fatalf("kept: %v\n%s", kept, r.err)
	}
	// Over a long time there may be so many samples that only the file has the first of them.
	rest := strings.Contains(r.err, "what was recorded after the first")
	if part, all := in(filepath.Join(tmp, "part")), in(kept[0]); part == 0 || all <= part && !rest {
		t.Errorf("%d samples in the file, %d in all", part, all)
	}
}
