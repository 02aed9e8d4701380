package dotnet_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
)

// perfEntry is a method as the runtime's own perf map has it: "instance void [Module]
// Space.Outer+Inner`1[int32]::Name[string](int32)[Tier]".
var perfEntry = regexp.MustCompile(`^([0-9a-f]+) ([0-9a-f]+) (?:.* )?\[([^\]]*)\] ([^(]*)::([^(]*)\((.*)\)\[(\w+)\]$`)

// perfTiers are the perf map's words for the kinds of frames.
var perfTiers = map[string]walk.Kind{
	"QuickJitted": walk.KindTier0, "OptimizedTier1": walk.KindTier1, "OptimizedTier1OSR": walk.KindOSR, "Optimized": walk.KindTier1,
	"InstrumentedTier": walk.KindInstrumented, "InstrumentedTierOptimized": walk.KindInstrumented, "PreJIT": walk.KindReadyToRun,
}

// TestNames compares the names and tiers of all generated methods with the runtime's own perf map.
func TestNames(t *testing.T) {
	for _, major := range fixture.DotNets {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			assembly := fixture.CSharp(t, major, "testdata/Steps.cs")
			dir := t.TempDir()
			target := dotnet{major: major}.start(t, assembly, []string{"DOTNET_PerfMapEnabled=3", "DOTNET_PerfMapJitDumpPath=" + dir}, "1500")
			p, err := attach.Open(target.PID(), native.NewFiles())
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			// A program of which little has run has few methods.
			var text []byte
			for end := time.Now().Add(time.Minute); bytes.Count(text, []byte("\n")) < 400 && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
				if text, err = os.ReadFile(fmt.Sprintf("%s/perf-%d.map", dir, target.PID())); err != nil {
					t.Fatal(err)
				}
			}
			p.Target.Memory().Invalidate()
			p.BeginBatch()
			compared, dynamic, tierless, wrong := compareNames(t, p, major, string(text))
			t.Logf("%d names compared, %d of them of dynamic methods and stubs, %d of unknown tier, %d wrong", compared, dynamic, tierless, wrong)
			if major >= 9 && tierless > compared/20 {
				t.Errorf("of %d methods %d have no tier", compared, tierless)
			}
			if compared < 150 {
				t.Errorf("only %d names were compared", compared)
			}
		})
	}
}

func compareNames(t *testing.T, p *attach.Process, major int, text string) (compared, dynamic, tierless, wrong int) {
	vm := p.Runtimes[0]
	latest := map[uint64]string{} // of a place that several have had
	for line := range strings.Lines(text) {
		if at, _, ok := strings.Cut(line, " "); ok {
			start, _ := strconv.ParseUint(strings.TrimPrefix(at, "0x"), 16, 64)
			latest[start] = strings.TrimSpace(line)
		}
	}
	for start, line := range latest {
		m := perfEntry.FindStringSubmatch(strings.TrimPrefix(line, "0x"))
		if m == nil {
			continue
		}
		st := walk.Stack{}
		c := walk.Cursor{Stack: &st, Mem: p.Target.Memory(), Leaf: true, Regs: cpu.Registers{Arch: cpu.AMD64, PC: start}}
		if !vm.Stepper().Owns(start) {
			t.Errorf("%s is not found", line)
			wrong++
			continue
		}
		vm.Stepper().Step(&c)
		if len(st.Frames) == 0 {
			t.Errorf("%s has no frame", line)
			wrong++
			continue
		}
		f := vm.Resolver(p.Names).Resolve(st.Frames[0], nil)[0]
		compared++
		if f.Kind == walk.KindCompiled {
			tierless++
		}
		got := f.Raw
		if got == "" {
			got = f.Function
		}
		want := withoutArguments(m[4]) + "." + withoutArguments(m[5])
		if strings.HasPrefix(m[4], "dynamicClass") || strings.HasPrefix(m[5], "IL_STUB") {
			dynamic++
			want = m[5]
			got = strings.TrimPrefix(got, "DynamicClass.")
		}
		kind, known := perfTiers[m[7]]
		if strings.Contains(m[4], "[]") || strings.Contains(m[4], "[,") {
			want = got // arrays have no metadata
		}
		if got != want || known && f.Kind != kind && f.Kind != walk.KindStub && f.Kind != walk.KindCompiled {
			if wrong++; wrong < 10 {
				t.Errorf("%q is %q (%q), %v; should be %q", line, got, f.Function, f.Kind, want)
			}
		}
	}
	return compared, dynamic, tierless, wrong
}

// withoutArguments removes type arguments in brackets.
func withoutArguments(s string) string {
	var out strings.Builder
	depth := 0
	for _, r := range s {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth == 0:
			out.WriteRune(r)
		}
	}
	return out.String()
}
