package record

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// ladderSteps is how many methods call one another in the program that ladder writes.
const ladderSteps = 200

// ladder writes a program whose stacks are known: method hN calls hN+1, up to the depth at which it
// waits, and on the way up each hN calls bN, which computes. So the callers of bN are hN, hN-1, …
// h0, each once: the name alone determines them.
func ladder(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`import java.lang.reflect.Method;
import java.util.concurrent.locks.LockSupport;

public class Ladder {
    static volatile long sink;
    static volatile int turns = Integer.getInteger("turns", 4000);
    static String mode;
    static final Object[] monitors = { new Object(), new Object(), new Object(), new Object(), new Object(), new Object(), new Object(), new Object() };

    interface Waits { void nap(); }
    static Waits waits;
    static final ThreadLocal<Object> mine = new ThreadLocal<>();
    static Method reflected;

    static void nap(int d) {
        if (mode.equals("reflected")) {
            try { reflected.invoke(null); } catch (Exception e) { throw new RuntimeException(e); }
        } else if (mode.equals("synchronized")) {
            synchronized (monitors[(int) (Thread.currentThread().threadId() & 7)]) { waits.nap(); }
        } else if (mode.equals("native")) {
            Ladders.below();
        } else if (mode.equals("contended")) {
            waits.nap();
            synchronized (monitors[0]) { waits.nap(); }
        } else if (mode.equals("waiting")) {
            Object m = monitors[(int) (Thread.currentThread().threadId() & 7)];
            synchronized (m) {
                try { m.wait(1); } catch (InterruptedException e) { throw new RuntimeException(e); }
            }
        } else {
            waits.nap();
        }
    }
    public static void park() { LockSupport.parkNanos(200_000); }

    static void run(int thread, long end) {
        int[] depths = { 1, 3, 10, 40, 120, 199 };
        for (int i = thread; System.nanoTime() < end; i++) h0(depths[i % depths.length]);
    }

    public static void main(String[] args) throws Exception {
        mode = args[0];
        double seconds = Double.parseDouble(args[1]);
        int count = Integer.parseInt(args[2]);
        reflected = Ladder.class.getMethod("park");
        waits = Ladder::park;
        h0(199);
        int asked = turns;
        turns = 30;
        for (int i = 0; i < 1500; i++) warm();
        turns = asked;
        for (int i = 0; i < 60; i++) warm();
        System.out.println("ready");
        System.out.flush();
        System.in.read();
        long end = System.nanoTime() + (long) (seconds * 1e9);
        Ladders.start(mode, count, end);
        Thread.sleep(1000); // its last samples are walked while its code is there
    }
`)
	for i := range ladderSteps {
		next := fmt.Sprintf("h%d(d)", i+1)
		if i == ladderSteps-1 {
			next = "nap(d)"
		}
		fmt.Fprintf(&b, "    static void h%d(int d) { if (d == %d) nap(d); else %s; b%d(); }\n", i, i, next, i)
		fmt.Fprintf(&b, "    static void b%d() { long v = %d; for (int i = turns; i > 0; i--) v = v * 31 + (v >> 3); sink = v; }\n", i, i)
	}
	// How long each bN takes must not depend on when the VM compiles it: C2 does so once it was called
	// Tier4MinInvocationThreshold times (600), which those of the lower levels are much sooner. The
	// program waits for each of these compilations (climb).
	b.WriteString("    static void warm() {\n")
	for i := range ladderSteps {
		fmt.Fprintf(&b, "        b%d();\n", i)
	}
	b.WriteString("    }\n}\n")
	file := filepath.Join(t.TempDir(), "Ladder.java")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// rung is a way of running the ladder.
type rung struct {
	jdk    int
	mode   string
	engine string
	flags  []string
}

// hardly makes threads compute so little that they are mostly unmounting and mounting.
const hardly = "-Dturns=50"

// restless reports whether most samples are of threads that are unmounting or mounting.
func (r rung) restless() bool { return slices.Contains(r.flags, hardly) }

func (r rung) String() string {
	return strings.Join(append([]string{strconv.Itoa(r.jdk), r.mode, r.engine}, r.flags...), " ")
}

// climb records the ladder and returns the profile.
func climb(t *testing.T, r rung, seconds float64) *profile.Profile {
	t.Helper()
	args := []string{"--add-exports", "java.base/jdk.internal.vm=ALL-UNNAMED"}
	classes := fixture.Classes(t, r.jdk, append(slices.Clone(args), ladder(t), filepath.Join("testdata", "Ladders.java"))...)
	args = append(args, "-Xmx256m", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Ladder::*",
		"-XX:CompileCommand=BackgroundCompilation,Ladder::b*,false", "-cp", classes)
	args = append(args, r.flags...)
	if r.mode == "structured" {
		args = append(args, "--enable-preview")
	}
	args = append(args, "Ladder", r.mode, fmt.Sprint(seconds), "20")
	p := fixture.Start(t, exec.Command(fixture.JDKTool(t, r.jdk, "java"), args...))
	p.Await("ready")
	go func() {
		time.Sleep(500 * time.Millisecond)
		_, _ = p.Write([]byte{'\n'})
	}()
	hz := 997.0
	if r.restless() {
		hz = 4999
	}
	rec := run(t, Options{PIDs: []int{p.PID()}, Engine: r.engine, Hz: hz, Duration: time.Duration((seconds + 2) * float64(time.Second))})
	if err := rec.Profile.Check(); err != nil {
		t.Fatal(err)
	}
	return rec.Profile
}

// climbed is the outcome of the samples of a ladder.
type climbed struct {
	samples          int // in a bN
	right            int
	complete         int // of the right ones
	short            int // ended before h0, and marked so
	wrong            map[string]int
	at               [ladderSteps]float64
	ends             [walk.NumEnds]int
	others           map[string]int // incomplete samples outside of a bN, by the innermost frames
	all, allComplete int
	chains           int // samples that contain an hN
	impossible       map[string]int
}

// chain checks the hN of any sample: they are one chain down to h0, even while threads unmount and
// mount.
func (c *climbed) chain(names []string, s *profile.Sample, n uint64) {
	first := slices.IndexFunc(names, isStep)
	if first < 0 {
		return
	}
	c.chains += int(n)
	level, _ := strconv.Atoi(strings.TrimPrefix(names[first], "Ladder.h"))
	certainty := profile.CertaintyOf(s.End, s.Flags)
	sure := certainty == profile.CertaintyComplete || certainty == profile.CertaintyStitched
	if last := names[len(names)-1]; !sure && !strings.Contains(last, "Ladder") && !strings.HasPrefix(last, "java.") {
		// If a stack is cut, its outermost frame may have no name.
		names = names[:len(names)-1]
	}
	if why := callersOf(level, names[first:], sure); why != "" {
		c.impossible[fmt.Sprintf("%s below %q, %v", why, names[:first+1], s.End)] += int(n)
	}
}

func isStep(name string) bool { return strings.HasPrefix(name, "Ladder.h") }

// judge compares each sample with what the name of its innermost method says.
func judge(p *profile.Profile) *climbed {
	c := &climbed{wrong: map[string]int{}, others: map[string]int{}, impossible: map[string]int{}}
	var names []string
	p.Each(func(s *profile.Sample, n uint64) {
		names = names[:0]
		guessed := false
		for at := s.Node; at != profile.RootNode; at = p.Nodes[at].Parent {
			f := &p.Frames[p.Nodes[at].Frame]
			if f.Kind == walk.KindKernel {
				continue
			}
			names = append(names, p.Funcs[f.Func].Name)
			guessed = guessed || f.Prov == walk.Heuristic
		}
		whole := s.End == walk.EndComplete && s.Flags == 0 && !guessed
		c.all += int(n)
		if whole {
			c.allComplete += int(n)
		}
		c.chain(names, s, n)
		i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, "Ladder.") })
		if i < 0 || !strings.HasPrefix(names[i], "Ladder.b") {
			if !whole {
				c.others[fmt.Sprint(s.End, " ", names[:min(len(names), 5)])] += int(n)
			}
			return
		}
		level, _ := strconv.Atoi(strings.TrimPrefix(names[i], "Ladder.b"))
		c.samples += int(n)
		c.at[level] += float64(n)
		verdict := callersOf(level, names[i+1:], s.End == walk.EndComplete)
		switch {
		case verdict == "" && s.End == walk.EndComplete:
			c.right += int(n)
			if whole {
				c.complete += int(n)
			}
		case verdict == "":
			c.right += int(n)
			c.short += int(n)
			c.others[fmt.Sprint("cut at ", s.Time/1e8, " ", len(names), " frames")] += int(n)
			c.ends[s.End] += int(n)
		default:
			c.wrong[fmt.Sprint(verdict, " below ", names[:i+1], " ", s.End)] += int(n)
		}
	})
	return c
}

// callersOf returns what is wrong with the callers of the method at some level, "" if nothing is.
// Callers may be missing only if the stack says that they are.
func callersOf(level int, callers []string, complete bool) string {
	for i := 0; i <= level; i++ {
		if i >= len(callers) {
			if complete {
				return fmt.Sprintf("of %d callers %d are missing in a complete stack", level+1, level+1-i)
			}
			return ""
		}
		if want := fmt.Sprintf("Ladder.h%d", level-i); callers[i] != want {
			return fmt.Sprintf("b%d: %s instead of %s (%d), then %v", level, callers[i], want, i, callers[i:min(len(callers), i+5)])
		}
	}
	rest := callers[level+1:]
	if len(rest) == 0 && complete || slices.ContainsFunc(rest, func(n string) bool { return strings.HasPrefix(n, "Ladder.h") }) {
		return fmt.Sprint("beyond h0: ", rest[:min(len(rest), 6)])
	}
	return ""
}

func (c *climbed) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d samples: %.2f %% right, %.2f %% right and complete, %.2f %% cut short; %d below an hN; all %d: %.2f %% complete", c.samples,
		100*float64(c.right)/float64(max(c.samples, 1)), 100*float64(c.complete)/float64(max(c.samples, 1)), 100*float64(c.short)/float64(max(c.samples, 1)),
		c.chains, c.all, 100*float64(c.allComplete)/float64(max(c.all, 1)))
	for e, n := range c.ends {
		if n > 0 {
			fmt.Fprintf(&b, "\n  %d end with %v", n, walk.End(e))
		}
	}
	most := func(title string, m map[string]int) {
		keys := make([]string, 0, len(m))
		for k := range m {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(a, b string) int { return m[b] - m[a] })
		for _, k := range keys[:min(len(keys), 8)] {
			fmt.Fprintf(&b, "\n  %s %d × %s", title, m[k], k)
		}
	}
	most("wrong", c.wrong)
	most("impossible", c.impossible)
	most("incomplete elsewhere", c.others)
	return b.String()
}

// shares returns what is wrong with the shares of levels that are computed equally often.
func (c *climbed) shares() string {
	wrong := ""
	depths := []int{1, 3, 10, 40, 120, 199}
	from := 0
	// Levels up to the same depth are computed equally often, so their sums differ from the length
	// of the stretch only by chance.
	base := 0.0
	for i := len(depths) - 1; i >= 0; i-- {
		from = 0
		if i > 0 {
			from = depths[i-1] + 1
		}
		sum := 0.0
		for l := from; l <= depths[i]; l++ {
			sum += c.at[l]
		}
		per := sum / float64(depths[i]+1-from)
		if i == len(depths)-1 {
			base = per
			continue
		}
		want := base * float64(len(depths)-i) * float64(depths[i]+1-from)
		if sigma := math.Sqrt(want) + want*0.1; math.Abs(sum-want) > 5*sigma {
			wrong += fmt.Sprintf("levels %d to %d have %.0f samples, not about %.0f; ", from, depths[i], sum, want)
		}
	}
	return wrong
}

// rungs returns the configurations: for each JDK one in make test, all of them in make test-full.
func rungs(t *testing.T) []rung {
	if what := os.Getenv("CANDID_LADDER"); what != "" { // JDK,mode,engine,flag…;…
		var list []rung
		for _, one := range strings.Split(what, ";") {
			f := strings.Split(one, ",")
			major, _ := strconv.Atoi(f[0])
			list = append(list, rung{major, f[1], f[2], f[3:]})
		}
		return list
	}
	if !fixture.Full(t) {
		return []rung{{21, "park", "bpf", nil}, {25, "nested", "bpf", nil}, {27, "short", "bpf", nil}, {25, "park", "perf", nil},
			{27, "structured", "bpf", nil}, {21, "native", "bpf", nil}, {25, "contended", "bpf", []string{hardly}}, {27, "waiting", "bpf", []string{hardly, "-Xint"}}}
	}
	var list []rung
	for _, major := range []int{21, 25, 27} {
		for _, mode := range []string{"park", "synchronized", "native", "contended", "waiting", "reflected", "nested", "short", "million", "structured", "server"} {
			list = append(list, rung{major, mode, "bpf", nil})
		}
		for _, mode := range []string{"park", "contended", "waiting"} {
			list = append(list, rung{major, mode, "bpf", []string{hardly}}, rung{major, mode, "bpf", []string{hardly, "-Xint"}},
				rung{major, mode, "bpf", []string{hardly, "-XX:TieredStopAtLevel=1"}})
		}
		for _, gc := range []string{"-XX:+UseZGC", "-XX:+UseParallelGC", "-XX:+UseSerialGC"} {
			list = append(list, rung{major, "park", "bpf", []string{gc}})
		}
		list = append(list, rung{major, "park", "perf", nil}, rung{major, "park", "suspend", nil})
	}
	return append(list, rung{21, "park", "bpf", []string{"-XX:+UseZGC", "-XX:+ZGenerational"}},
		rung{25, "park", "bpf", []string{"-XX:+UseCompactObjectHeaders"}}, rung{25, "park", "bpf", []string{"-XX:-UseCompressedOops"}})
}

// TestVirtualThreads records virtual threads that wait at known depths and compute on their way up:
// at most one sample in a thousand may have wrong callers.
func TestVirtualThreads(t *testing.T) {
	seconds := 2.0
	if fixture.Full(t) {
		seconds = 6
	}
	for _, r := range rungs(t) {
		t.Run(r.String(), func(t *testing.T) {
			tooLittle := fixture.Watch(t)
			c := judge(climb(t, r, seconds))
			t.Log(c)
			if c.samples < 50 {
				tooLittle("only %d samples", c.samples)
				return
			}
			if wrong := c.samples - c.right; float64(wrong) > max(0.001*float64(c.samples), 1) {
				t.Errorf("%d of %d samples have callers that were not there", wrong, c.samples)
			}
			for why, n := range c.impossible {
				t.Errorf("%d times a stack that cannot be: %s", n, why)
			}
			if w := c.shares(); w != "" && !r.restless() && r.mode != "structured" && r.mode != "million" {
				t.Error(w)
			}
			if whole := float64(c.complete) / float64(c.samples); r.engine == "bpf" && whole < 0.98 {
				// A thread that waits for a CPU in the middle of being mounted stays in that state
				// for long.
				tooLittle("only %.1f %% of the samples are complete", 100*whole)
			}
		})
	}
}
