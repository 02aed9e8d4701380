package winsuspend_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// The processes of a command that candid starts are counted, also those that end at once.
func TestProcessesAreCounted(t *testing.T) {
	fixture.OnlyFull(t, "TestSubcommands")
	out, errs, code := wine(t, t.TempDir(), buildWindows(t, "./testdata/counted"), mingw(t, "testdata/brood.c"), "6", "1")
	if code != 0 || !strings.Contains(out, "processes 7 true") {
		t.Errorf("exit code %d, the command had 7 processes:\n%s%s", code, out, errs)
	}
}

// A program that loads and frees libraries all the time is recorded; nothing is taken for a function
// of a library that is not there any more.
func TestLibrariesComeAndGo(t *testing.T) {
	fixture.OnlyFull(t, "TestRecordNative")
	source, err := os.ReadFile("testdata/churn.c")
	if err != nil {
		t.Fatal(err)
	}
	exe, dir := candidExe(t), t.TempDir()
	args := []string{mingw(t, "testdata/churn.c"), "240", "30"}
	for _, name := range []string{"plug_a", "plug_b"} {
		// Both want the same place.
		dll := fixture.MinGW(t, "x86_64-w64-mingw32-gcc", name+".dll", string(source), "-O2", "-shared", "-DPLUG="+name, "-Wl,--image-base=0x2f0000000")
		args = append(args, `Z:`+strings.ReplaceAll(dll, "/", `\`))
	}
	fixture.Attempts(t, 3, func() (wrong string) {
		pid := strconv.Itoa(startWine(t, args...))
		_, errs, code := wine(t, dir, exe, "record", "-p", pid, "-d", "10s", "-F", "200", "--force", "-o", "churn.collapsed")
		if code != 0 {
			return fmt.Sprintf("exit code %d\n%s", code, errs)
		}
		var all, right, mixed, lost uint64
		for stack, n := range collapsed(t, filepath.Join(dir, "churn.collapsed")) {
			a, b := strings.Contains(stack, "plug_a"), strings.Contains(stack, "plug_b")
			all += n
			switch {
			case a && b:
				mixed += n
			case strings.Contains(stack, "main;visits"):
				right += n
				continue
			default:
				lost += n
			}
			t.Logf("%d %s", n, stack)
		}
		t.Logf("of %d samples %d have their callers, %d are of both libraries, %d of neither with its callers", all, right, mixed, lost)
		if all == 0 || mixed > 0 || lost*100 > all {
			return fmt.Sprintf("of %d samples %d have their callers, %d are of both libraries:\n%s", all, right, mixed, errs)
		}
		return ""
	})
}

// Recordings are written where users want them: with spaces, letters outside of ASCII, beyond 260
// characters, and to a share of the network.
func TestOutputPaths(t *testing.T) {
	fixture.OnlyFull(t, "TestSubcommands")
	exe, dir, pid := candidExe(t), t.TempDir(), strconv.Itoa(spin(t, 200))
	long := strings.Repeat("a long name ", 20)
	for _, folder := range []string{"with spaces", "Übergröße 日本語 🔥", filepath.Join(long, "ä"+long)} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, "recording of ü.jfr")
		for what, path := range map[string]string{
			"relative": strings.ReplaceAll(name, "/", `\`),
			"absolute": `Z:` + strings.ReplaceAll(filepath.Join(dir, name), "/", `\`),
			"UNC":      `\\?\unix` + strings.ReplaceAll(filepath.Join(dir, name), "/", `\`),
		} {
			_, errs, code := wine(t, dir, exe, "record", "-p", pid, "-d", "2s", "-o", path, "--force")
			st, err := os.Stat(filepath.Join(dir, name))
			empty := code == 5 // candid got no CPU
			if code != 0 && !empty || err != nil || st.Size() < 1000 {
				t.Errorf("%s, %s: exit code %d, %v\n%s", folder, what, code, err, errs)
				continue
			}
			if out, errs, code := wine(t, dir, exe, "report", path); !empty && (code != 0 || !strings.Contains(out, "leaf_spin")) {
				t.Errorf("%s, %s: report: exit code %d\n%s%s", folder, what, code, out, errs)
			}
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
	}
}
