package winsuspend_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// Each subcommand does in Wine what its users expect of it.
func TestSubcommands(t *testing.T) {
	exe, dir := candidExe(t), t.TempDir()
	one, two := strconv.Itoa(spin(t, 300)), strconv.Itoa(spin(t, 300))
	long := filepath.Join(dir, strings.Repeat("long/", 60))
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	longFile := strings.Repeat("long/", 60) + "x.jfr"
	if len(longFile) < 260 {
		t.Fatal("the path is too short")
	}
	try := func(code int, want string, args ...string) {
		t.Helper()
		out, errs, got := wine(t, dir, append([]string{exe}, args...)...)
		if got != code || !strings.Contains(out+errs, want) {
			t.Errorf("%s: exit code %d, %q is wanted:\n%s%s", strings.Join(args, " "), got, want, out, errs)
		}
	}
	try(0, "leaf_spin", "top", "--once", "-p", one, "-d", "1")
	try(0, "leaf_spin", "record", "-p", one, "-p", two, "-d", "3", "-F", "200", "-o", "two.jfr")
	try(0, "leaf_spin", "record", "-p", one, "-d", "3", "-o", "one.jfr")
	try(0, "leaf_spin", "record", "-p", one, "-d", "3", "-e", "wall", "-o", longFile)
	try(0, "NtDelayExecution", "report", longFile)
	try(0, "leaf_spin", "record", "-a", "-d", "5", "-o", "all.jfr")
	try(4, "no such process", "record", "-p", "999996", "-o", "no.jfr")
	try(2, "they cannot be compared", "diff", "two.jfr", longFile)
	try(0, "leaf_spin", "diff", "two.jfr", "one.jfr")
	for _, name := range []string{"x.jfr.gz", "x.pb.gz", "x.collapsed", "x.speedscope.json", "x.html", "x.otlp"} {
		try(0, "wrote "+name, "convert", "-o", name, "two.jfr")
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Size() < 100 {
			t.Errorf("%s: %v", name, err)
		}
	}
	// cmd starts another program, whose exit code it passes on.
	source, err := os.ReadFile("testdata/spin.c")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(fixture.MinGW(t, "x86_64-w64-mingw32-gcc", "spin.exe", string(source), "-O2"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "spin.exe"), b, 0o700); err != nil {
		t.Fatal(err)
	}
	fixture.Attempts(t, 3, func() (wrong string) {
		out, errs, code := wine(t, dir, exe, "record", "--children", "--force", "-o", "c.jfr", "--", "cmd", "/c", "spin.exe 3")
		if code != 7 {
			t.Errorf("record --children: exit code %d, the program's is 7\n%s%s", code, out, errs)
		}
		if !strings.Contains(errs, "leaf_spin") {
			return "the program that cmd started is not seen: it had ended when its first samples were to be walked:\n" + errs
		}
		return ""
	})
}

// running starts candid.exe and waits until it has printed want.
func running(t *testing.T, dir, want string, args ...string) (interrupt func() (code int), printed func() string) {
	t.Helper()
	exe := candidExe(t)
	c := fixture.Wine(t, exe, args...)
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
	var out bytes.Buffer
	var mu sync.Mutex
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		b, told := make([]byte, 4096), false
		for {
			n, err := r.Read(b)
			mu.Lock()
			out.Write(b[:n])
			is := strings.Contains(out.String(), want)
			mu.Unlock()
			if is && !told {
				told = true
				close(begun)
			}
			if err != nil {
				return
			}
		}
	}()
	late := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = c.Process.Kill()
	})
	select {
	case <-begun:
	case <-done:
		t.Fatalf("%s ended:\n%s", strings.Join(args, " "), out.String())
	}
	// Wine makes a console's Ctrl-C of this signal.
	return func() int {
			_ = c.Process.Signal(syscall.SIGINT)
			_ = c.Wait()
			<-done
			return c.ProcessState.ExitCode()
		}, func() string {
			mu.Lock()
			defer mu.Unlock()
			return out.String()
		}
}

// Ctrl-C ends a recording, which is saved, and the viewer, which has served its page until then.
func TestInterrupted(t *testing.T) {
	dir, pid := t.TempDir(), strconv.Itoa(spin(t, 120))
	interrupt, _ := running(t, dir, "threads suspended for a copy", "record", "-p", pid, "-o", "i.jfr")
	time.Sleep(2 * time.Second)
	if code := interrupt(); code != 0 {
		t.Errorf("record: exit code %d after Ctrl-C", code)
	}
	out, errs, code := wine(t, dir, candidExe(t), "report", "i.jfr")
	if code != 0 || !strings.Contains(out, "leaf_spin") {
		t.Fatalf("what was recorded until Ctrl-C: exit code %d\n%s%s", code, out, errs)
	}
	interrupt, printed := running(t, dir, "until Ctrl-C", "view", "--port", "0", "i.jfr")
	url := regexp.MustCompile(`http://127\.0\.0\.1:\S+`).FindString(printed())
	r, err := http.Get(url)
	if err != nil {
		t.Fatalf("the viewer printed %q: %v", printed(), err)
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || r.StatusCode != http.StatusOK || len(body) < 100 {
		t.Errorf("%s: %s, %d bytes, %v", url, r.Status, len(body), err)
	}
	if code := interrupt(); code != 0 {
		t.Errorf("view: exit code %d after Ctrl-C", code)
	}
}

// However a target ends, what was recorded of it is saved.
func TestTargetEnded(t *testing.T) {
	rounds := 2
	if fixture.Full(t) {
		rounds = 200
	}
	// On a busy machine a round in Wine takes several times as long.
	const least, within = 20, 4 * time.Minute
	exe, dir, began := candidExe(t), t.TempDir(), time.Now()
	for i := range rounds {
		if i >= least && time.Since(began) > within {
			t.Logf("%d of %d rounds within %v", i, rounds, within)
			break
		}
		pid := strconv.Itoa(spin(t, 120))
		ended := make(chan string, 1)
		go func() {
			time.Sleep(time.Duration(500+rand.IntN(2500)) * time.Millisecond)
			c := fixture.Wine(t, "taskkill", "/F", "/PID", pid)
			out, err := c.CombinedOutput()
			ended <- fmt.Sprint(string(out), err)
		}()
		name := fmt.Sprintf("%d.jfr", i)
		out, errs, code := wine(t, dir, exe, "record", "-p", pid, "-d", "60", "-F", "500", "-o", name)
		how := <-ended
		unknown := strings.Contains(errs, "no such process") || strings.Contains(errs, "it has ended")
		if code == 4 && unknown && !strings.Contains(errs, "threads suspended") {
			continue // it ended before candid had examined it
		}
		st, err := os.Stat(filepath.Join(dir, name))
		if code != 6 && code != 5 || err != nil || st.Size() == 0 {
			t.Errorf("ended (%s): exit code %d, %v\n%s%s", how, code, err, out, errs)
		}
	}
}
