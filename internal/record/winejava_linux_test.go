package record

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// windowsJava starts a Java program on the HotSpot for Windows, in Wine.
func windowsJava(t *testing.T, class, source string, flags ...string) *fixture.Program {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("Wine runs Windows programs of this processor only")
	}
	java := fixture.WindowsJVM(t)
	file := filepath.Join(t.TempDir(), class+".java")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := fixture.Classes(t, 11, file)
	// Wine shows the system's root as a drive.
	args := append([]string{"-cp", "Z:" + strings.ReplaceAll(dir, "/", `\`), "-Xmx64m"}, append(flags, class)...)
	p := fixture.Start(t, fixture.Wine(t, java, args...))
	p.Await("ready")
	return p
}

// TestWineJava records a chain of methods that are never inlined, on HotSpot 11 for Windows in Wine:
// each stack has the whole chain, VM and Windows below it, whichever compiler made the code.
func TestWineJava(t *testing.T) {
	const source = `
public class Chain {
    static volatile double sink;
    static double leaf(int n) { double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i; return s; }
    static double f4(int n) { return leaf(n) + 1; }
    static double f3(int n) { return f4(n) + 1; }
    static double f2(int n) { return f3(n) + 1; }
    static double f1(int n) { return f2(n) + 1; }
    public static void main(String[] a) {
        Thread.currentThread().setName("chain runner");
        System.out.println("ready");
        for (;;) sink += f1(500);
    }
}`
	want := []string{"Chain.main", "Chain.f1", "Chain.f2", "Chain.f3", "Chain.f4", "Chain.leaf"}
	for name, flags := range map[string][]string{
		"default": nil, "C1": {"-XX:TieredStopAtLevel=1"}, "interpreted": {"-Xint"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "default" {
				fixture.OnlyFull(t, "the default")
			}
			p := windowsJava(t, "Chain", source, append(flags, "-XX:CompileCommand=dontinline,Chain.*", "-XX:CompileCommand=quiet")...)
			tooLittle := fixture.Watch(t)
			seconds := 3 * time.Second
			if fixture.Full(t) {
				seconds = 20 * time.Second
			}
			r := run(t, Options{PIDs: []int{p.PID()}, Duration: seconds, Hz: 499})
			all, wrong, broken := 0, 0, 0
			for _, s := range r.Profile.Samples {
				if r.Profile.Threads[s.Thread].Name != "chain runner" {
					continue
				}
				all++
				if s.End != walk.EndComplete {
					if broken++; broken < 5 {
						t.Logf("%v", s.End)
					}
					continue
				}
				// The VM may be at work in any method of the chain.
				stack := slices.DeleteFunc(functionsOf(r.Profile, s.Node), func(name string) bool { return !strings.HasPrefix(name, "Chain.") })
				if n := min(len(stack), len(want)); n == 0 || !slices.Equal(stack[:n], want[:n]) {
					if wrong++; wrong < 5 {
						t.Logf("%q", stack)
					}
				}
			}
			if all < 100 {
				tooLittle("%d samples of the thread", all)
			}
			t.Logf("%d samples, %d not complete, %d with other methods", all, broken, wrong)
			if (broken+wrong)*1000 > all {
				t.Errorf("of %d stacks %d are not complete, and %d have other methods", all, broken, wrong)
			}
			tp, err := target.Open(p.PID())
			if err != nil {
				t.Fatal(err)
			}
			defer tp.Close()
			if d, err := runtimes.Of(tp); err != nil || d.Kind != runtimes.Hotspot || !strings.HasPrefix(d.Version, "11.") {
				t.Errorf("recognised as %v, %v", d, err)
			}
		})
	}
}

// TestWineJavaLaunched records a program for the HotSpot for Windows from its launch: the VM is found,
// although no engine reports that Wine loads it.
func TestWineJavaLaunched(t *testing.T) {
	fixture.OnlyFull(t, "TestWineJava")
	const source = `
public class Spins {
    static volatile double sink;
    static double spin(int n) { double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i; return s; }
    public static void main(String[] a) {
        for (long end = System.nanoTime() + 15_000_000_000L; System.nanoTime() < end; ) sink += spin(500);
    }
}`
	java := fixture.WindowsJVM(t)
	file := filepath.Join(t.TempDir(), "Spins.java")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := fixture.Wine(t, java, "-cp", "Z:"+strings.ReplaceAll(fixture.Classes(t, 11, file), "/", `\`), "-Xmx64m", "Spins")
	tooLittle := fixture.Watch(t)
	r := run(t, Options{Command: cmd.Args, Hz: 199})
	named, complete := 0, 0
	for _, s := range r.Profile.Samples {
		if !slices.Contains(functionsOf(r.Profile, s.Node), "Spins.main") {
			continue
		}
		if named++; s.End == walk.EndComplete {
			complete++
		}
	}
	t.Logf("%d samples, %d in Spins.main, %d of these complete", len(r.Profile.Samples), named, complete)
	if named < 100 {
		tooLittle("%d samples in Spins.main", named)
		return
	}
	if complete*1000 < named*999 {
		t.Errorf("%d of %d stacks are complete", complete, named)
	}
}
