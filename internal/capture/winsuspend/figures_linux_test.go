package winsuspend_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
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

// A thread is suspended for hardly longer than the four calls take that have to be made.
func TestStopTime(t *testing.T) {
	prog, pid := buildWindows(t, "./testdata/stops"), spin(t, 120)
	rounds := "1000"
	if fixture.Full(t) {
		rounds = "10000"
	}
	fixture.Attempts(t, 3, func() (wrong string) {
		out, errs, code := wine(t, t.TempDir(), prog, strconv.Itoa(pid), rounds)
		var candid, alone, candid99, alone99 time.Duration
		var bytes int
		if _, err := fmt.Sscan(out, (*int64)(&candid), (*int64)(&alone), (*int64)(&candid99), (*int64)(&alone99), &bytes); code != 0 || err != nil {
			t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
		}
		text := fmt.Sprintf("suspended for a copy of %d bytes: median %v (the calls alone %v), 99 %% within %v (%v)", bytes, candid, alone, candid99, alone99)
		t.Log(text)
		if candid > alone+10*time.Microsecond {
			return text
		}
		return ""
	})
}

// Code that a program generates is walked by the unwind data that it registers for it.
func TestGeneratedCode(t *testing.T) {
	exe, dir := candidExe(t), t.TempDir()
	pid := startWine(t, mingw(t, "../../native/testdata/windows/generated.c"), "60")
	_, errs, code := wine(t, dir, exe, "record", "-p", strconv.Itoa(pid), "-d", "3s", "-F", "200", "--force", "-o", "g.collapsed")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	var all, right uint64
	for stack, n := range collapsed(t, filepath.Join(dir, "g.collapsed")) {
		if !strings.Contains(stack, "leaf") {
			continue
		}
		all += n
		frames := strings.Split(stack, ";")
		k := len(frames)
		if k > 5 && strings.HasPrefix(frames[k-2], "[anon]") && strings.HasPrefix(frames[k-3], "[anon]") && frames[k-4] == "computes" && frames[k-5] == "main" && strings.Contains(stack, "RtlUserThreadStart") {
			right += n
		} else {
			t.Logf("%d %s", n, stack)
		}
	}
	if all == 0 || right*1000 < all*999 {
		t.Errorf("%d of %d have the callers that they must have:\n%s", right, all, errs)
	}
}
