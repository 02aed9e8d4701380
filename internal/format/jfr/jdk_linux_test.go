package jfr_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, stderr.String())
	}
	return string(out)
}

// stacksOf returns what the JDK's reader makes of a file: how often each stack is in it, by type of
// event and thread.
func stacksOf(t testing.TB, major int, file string) map[string]int {
	t.Helper()
	out := map[string]int{}
	classes := fixture.Classes(t, major, filepath.Join("testdata", "Stacks.java"))
	for line := range strings.Lines(run(t, fixture.JDKTool(t, major, "java"), "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", classes, "Stacks", file)) {
		n, stack, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		count, err := strconv.Atoi(n)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out[stack] += count
	}
	return out
}

// stacks returns the stacks of a profile in the same form; none stands for one without frames.
func stacks(p *profile.Profile, none string, typeOf func(event string) string, frame func(f profile.Frame, fn profile.Func) string) map[string]int {
	out := map[string]int{}
	for _, s := range p.Samples {
		var b strings.Builder
		fmt.Fprintf(&b, "%s\t%s\t", typeOf(p.Events[s.Event].Name), p.Threads[s.Thread].Name)
		if s.Node == profile.RootNode {
			b.WriteString(none)
		}
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			f := p.Frames[p.Nodes[n].Frame]
			b.WriteString(frame(f, p.Funcs[f.Func]) + ";")
		}
		out[b.String()]++
	}
	return out
}

func differ(t *testing.T, got, want map[string]int) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	shown := 0
	for k, n := range want {
		if got[k] != n && shown < 5 {
			shown++
			t.Errorf("%d times, want %d: %s", got[k], n, k)
		}
	}
	for k, n := range got {
		if want[k] == 0 && shown < 10 {
			shown++
			t.Errorf("%d times, want none: %s", n, k)
		}
	}
}

// The JDK reads from a recording of candid's what is in it.
func TestJDKReadsIt(t *testing.T) {
	types := map[walk.Kind]string{
		walk.KindInterpreted: "Interpreted", walk.KindC1: "C1 compiled", walk.KindC2: "JIT compiled", walk.KindCompiled: "JIT compiled", walk.KindAOT: "JIT compiled",
		walk.KindInlined: "Inlined", walk.KindNative: "Native", walk.KindStub: "Native", walk.KindNativeMethod: "Native", walk.KindUnknown: "Native", walk.KindKernel: "Kernel",
		walk.KindTier0: "JIT compiled", walk.KindInstrumented: "JIT compiled", walk.KindOSR: "JIT compiled", walk.KindTier1: "JIT compiled", walk.KindReadyToRun: "JIT compiled",
	}
	rich := everything(500)
	for name, p := range map[string]*profile.Profile{"java": profiletest.Java(), "everything": rich} {
		file := filepath.Join(t.TempDir(), name+".jfr")
		if err := os.WriteFile(file, written(t, p), 0o600); err != nil {
			t.Fatal(err)
		}
		unpacked := filepath.Join(t.TempDir(), name+"-unpacked.jfr")
		if err := os.WriteFile(unpacked, gunzip(t, packed(t, jfr.WritePacked, p)), 0o600); err != nil {
			t.Fatal(err)
		}
		want := stacks(p, "|[no stack]|Native|0;", func(event string) string {
			return map[string]string{"cpu": "jdk.ExecutionSample", "wall": "profiler.WallClockSample", "sched:sched_switch": "candid.Sample"}[event]
		}, func(f profile.Frame, fn profile.Func) string {
			class, method := strings.Trim(fn.Module, "[]"), fn.Name
			if i := strings.LastIndexByte(fn.Name, '.'); fn.Module == "" && i > 0 && i+1 < len(fn.Name) {
				class, method = fn.Name[:i], fn.Name[i+1:]
			}
			kind := types[f.Kind]
			if f.Kind == walk.KindNative && strings.HasPrefix(fn.Raw, "_Z") {
				kind = "C++"
			}
			return fmt.Sprintf("%s|%s|%s|%d", class, method, kind, f.Line)
		})
		for _, major := range []int{17, 25} {
			t.Run(fmt.Sprintf("%s/%d", name, major), func(t *testing.T) {
				differ(t, stacksOf(t, major, file), want)
				differ(t, stacksOf(t, major, unpacked), want)
				summary := run(t, fixture.JDKTool(t, major, "jfr"), "summary", file)
				counts := regexp.MustCompile(`jdk\.ExecutionSample +(\d+)`).FindStringSubmatch(summary)
				n := 0
				for i := range p.Samples {
					if p.Events[p.Samples[i].Event].Name == "cpu" {
						n++
					}
				}
				if counts == nil || counts[1] != strconv.Itoa(n) {
					t.Errorf("%d samples:\n%s", n, summary)
				}
				// Everything can be printed, including candid's own events.
				printed := run(t, fixture.JDKTool(t, major, "jfr"), "print", "--stack-depth", "2", file)
				if n := strings.Count(printed, "\njdk.ExecutionSample {"); counts != nil && strconv.Itoa(n) != counts[1] {
					t.Errorf("%d samples are printed", n)
				}
				for _, text := range []string{"candid.Recording {", "candid.Thread {", "candid.Losses {", `end = "complete"`} {
					if !strings.Contains(printed, text) {
						t.Errorf("%q is not printed", text)
					}
				}
				if major >= 21 {
					view := run(t, fixture.JDKTool(t, major, "jfr"), "view", "--width", "200", "hot-methods", file)
					if name == "java" && !regexp.MustCompile(`java\.util\.HashMap\.hash\(\) +2,?400`).MatchString(view) {
						t.Errorf("hot methods:\n%s", view)
					}
				}
			})
		}
	}
}

// The parts of a recording of candid's that jfr scrub leaves are read as far as they exist.
func TestScrubbed(t *testing.T) {
	p := profiletest.Java()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.jfr"), filepath.Join(dir, "out.jfr")
	if err := os.WriteFile(in, written(t, p), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, fixture.JDKTool(t, 25, "jfr"), "scrub", "--exclude-events", "candid.Process", in, out)
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, data)
	method := func(string) string { return "" }
	name := func(f profile.Frame, fn profile.Func) string { return fmt.Sprintf("%s|%d;", fn.Name, f.Line) }
	differ(t, stacks(got, "[no stack]|0;", method, name), stacks(p, "[no stack]|0;", method, name))
	if len(got.Processes) != 0 || len(got.Meta.Notes) != len(p.Meta.Notes)+1 || got.Meta.Engine != p.Meta.Engine || got.Samples[9].State != p.Samples[9].State {
		t.Errorf("%+v", got.Meta)
	}
}

// recordJDK records Busy with the JVM's own recorder.
func recordJDK(t *testing.T, major int, settings string) string {
	t.Helper()
	dir := fixture.Classes(t, major, filepath.Join("testdata", "Busy.java"))
	file := filepath.Join(dir, "jdk.jfr")
	run(t, fixture.JDKTool(t, major, "java"), "-XX:StartFlightRecording=filename="+file+",settings=profile"+settings, "-Xlog:disable", "-Ddb.password=hunter2", "-cp", dir, "Busy", "700", "--token", "hunter3")
	return file
}

// candid reads from a JVM's own recording what the JDK's reader does.
func TestReadsJDK(t *testing.T) {
	types := map[string]string{
		"cpu": "jdk.CPUTimeSample", "execution": "jdk.ExecutionSample", "native-method": "jdk.NativeMethodSample", "alloc": "jdk.ObjectAllocationSample",
		"lock": "jdk.JavaMonitorEnter", "park": "jdk.ThreadPark", "sleep": "jdk.ThreadSleep", "wait": "jdk.JavaMonitorWait",
	}
	known := map[string]bool{}
	for _, typ := range types {
		known[typ] = true
	}
	kinds := map[walk.Kind]string{
		walk.KindInterpreted: "Interpreted", walk.KindCompiled: "JIT compiled", walk.KindInlined: "Inlined", walk.KindNativeMethod: "Native",
	}
	for major, more := range map[int]string{17: "", 25: ",jdk.CPUTimeSample#enabled=true"} {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			file := recordJDK(t, major, more)
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			st, _ := f.Stat()
			p, err := jfr.Read(f, st.Size())
			if err != nil {
				t.Fatal(err)
			}
			got := stacks(p, "", func(event string) string { return types[event] }, func(f profile.Frame, fn profile.Func) string {
				name := fn.Raw
				if name == "" {
					name = fn.Name
				}
				i := strings.LastIndexByte(name, '.')
				return plainLambda(fmt.Sprintf("%s|%s|%s|%d", name[:i], name[i+1:], kinds[f.Kind], f.Line))
			})
			want := map[string]int{}
			for stack, n := range stacksOf(t, major, file) {
				if typ, _, _ := strings.Cut(stack, "\t"); known[typ] {
					want[plainLambda(stack)] += n
				}
			}
			differ(t, got, want)
			wanted := []string{"execution", "alloc", "lock", "park", "sleep"}
			if major == 25 {
				wanted = append(wanted, "cpu")
			}
			for _, name := range wanted {
				i, ok := p.EventByName(name)
				if sel := p.Select(profile.Filter{Event: i}); !ok || sel.All.Samples == 0 || sel.All.Weight == 0 {
					t.Errorf("no samples of %s: %+v", name, p.Events)
				}
			}
			// Allocations and waits for monitors say the class, also when candid has written them again.
			var out bytes.Buffer
			if err := jfr.Write(&out, p); err != nil {
				t.Fatal(err)
			}
			again, err := jfr.Read(bytes.NewReader(out.Bytes()), int64(out.Len()))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"alloc", "lock", "sleep"} {
				i, _ := p.EventByName(name)
				j, _ := again.EventByName(name)
				labels := p.Select(profile.Filter{Event: i}).ByLabel()
				if n := sumOf(labels); name != "sleep" && n != p.EventSamples()[i] || name == "sleep" && n != 0 {
					t.Errorf("%d of %d samples of %s have a class: %+v", n, p.EventSamples()[i], name, labels)
				}
				if got := again.Select(profile.Filter{Event: j}).ByLabel(); !slices.Equal(got, labels) {
					t.Errorf("%s has the labels\n%+v, written again\n%+v", name, labels, got)
				}
			}
			// Values that were seen beside the samples, including those that the JDK writes as
			// constants.
			texts := map[uint16]string{}
			for _, o := range p.Observations {
				if o.Process != 0 {
					t.Errorf("%+v is of no process", o)
				}
				texts[o.Kind] += o.Values[0].Text
			}
			for _, kind := range []uint16{profile.OSInformation, profile.CPUInformation, profile.GCConfiguration, profile.LongFlag, profile.InitialSystemProperty} {
				if texts[kind] == "" {
					t.Errorf("no %s", profile.ObservationKinds[kind].Name)
				}
			}
			// Secrets, which the JVM writes as they are, are masked.
			if all := fmt.Sprint(texts[profile.InitialSystemProperty], p.Meta.Command, p.Processes, p.Observations); strings.Contains(all, "hunter") || !strings.Contains(all, "db.password") {
				t.Errorf("%s", all)
			}
			if pr := p.Processes; len(pr) != 1 || pr[0].PID == 0 || !strings.HasPrefix(pr[0].Runtime, fmt.Sprintf("hotspot %d", major)) || !strings.Contains(pr[0].Command, "Busy") {
				t.Errorf("%+v", pr)
			}
		})
	}
}

// sumOf returns how many samples have a class that is named.
func sumOf(labels []profile.LabelCount) (n uint64) {
	for _, l := range labels {
		if l.Key == "class" && l.Text != "" && !strings.ContainsAny(l.Text, "/;") && !strings.HasPrefix(l.Text, "[") {
			n += l.Samples
		}
	}
	return n
}

// plainLambda removes the suffixes of hidden classes' names, for which the JDK's tools use other
// separators.
func plainLambda(s string) string {
	return regexp.MustCompile(`[+./]0x[0-9a-f]+([./][0-9]+)?`).ReplaceAllString(s, "")
}
