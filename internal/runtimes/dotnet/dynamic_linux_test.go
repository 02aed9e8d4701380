package dotnet_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/runtimes"
)

var made = regexp.MustCompile(`^DynamicClass\.made_\d+$`)

// TestCollectible records code that comes and goes: dynamic methods, which the collector frees, and
// an assembly in memory that is loaded and unloaded again. A stack that is called complete has the
// right callers and names.
func TestCollectible(t *testing.T) {
	for _, major := range []int{8, 9} { // the framework of 10 was trimmed of what makes such code
		if major == 8 && !fixture.Full(t) {
			continue
		}
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			tooLittle := fixture.Watch(t)
			target := dotnet{major: major}.start(t, fixture.CSharp(t, major, "testdata/Dynamic.cs"), nil)
			p := recorded(t, record.Options{PIDs: []int{target.PID()}, Duration: 2 * time.Second, Hz: 999, Events: []string{"cpu"}})
			dynamic, collectible, other := 0, 0, map[string]int{}
			for _, s := range p.Samples {
				stack := managed(p, s.Node)
				c := profile.CertaintyOf(s.End, s.Flags)
				at := slices.Index(stack, "Program.Spin")
				if c != profile.CertaintyComplete {
					other[fmt.Sprint(c, all(p, s.Node))]++
				}
				if at < 1 || c != profile.CertaintyComplete {
					continue
				}
				switch caller := stack[at-1]; {
				case made.MatchString(caller):
					dynamic++
					if at < 2 || stack[at-2] != "Program.Main" {
						t.Errorf("a dynamic method is called by %q", stack)
					}
				case caller == "Program.Collectible":
					collectible++
				case !strings.HasPrefix(caller, "IL_STUB"):
					t.Errorf("Spin is called by %q", stack)
				}
			}
			q := p.Quality()
			t.Logf("%d stacks with dynamic methods, %d with collectible code; %+v", dynamic, collectible, q)
			if q.Samples < 200 {
				tooLittle("%d samples", q.Samples)
				return
			}
			if dynamic < 30 || collectible < 30 || q.Complete+q.Unnamed < q.Samples*99/100 {
				t.Errorf("of %d samples %d are complete, %d unnamed, %d in dynamic methods, %d in collectible code; %v", q.Samples, q.Complete, q.Unnamed, dynamic, collectible, other)
			}
		})
	}
}

// TestThreads compares the names and kinds of threads.
func TestThreads(t *testing.T) {
	for major, program := range map[int]string{8: "host", 9: "dotnet"} {
		t.Run(fmt.Sprint(major), func(t *testing.T) { compareThreads(t, major, program) })
	}
}

// compareThreads compares those of a program whose main thread the kernel calls by the program's name.
func compareThreads(t *testing.T, major int, program string) {
	target := dotnet{major: major}.start(t, fixture.CSharp(t, major, "testdata/Dynamic.cs"), nil)
	p, err := attach.Open(target.PID(), native.NewFiles())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if title := p.Title(); !strings.HasPrefix(title, fmt.Sprintf("coreclr %d.0.", major)) {
		t.Errorf("the program is built on %q", title)
	}
	namer, ok := runtimes.Ability[runtimes.ThreadNamer](p.Runtimes)
	if !ok {
		t.Fatal("the runtime has no names for threads")
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		names, whole := namer.AskThreads()
		kinds := map[string]string{}
		threads, err := p.Target.Threads()
		if err != nil {
			t.Fatal(err)
		}
		for _, th := range threads {
			name := names[int(th.TID)]
			kinds[th.Name] = namer.ThreadKind(uint32(th.TID), name, th.Name, whole)
			if name != "" {
				kinds[name] = kinds[th.Name]
			}
		}
		if whole && kinds["a thread with a long name"] == "dotnet" && kinds[".NET Finalizer"] == "finalizer" && kinds[".NET SynchManag"] == "vm" && kinds[program] == "dotnet" {
			return
		}
		// While the collector moves the object, its name cannot be read.
		if time.Now().After(end) {
			t.Fatalf("the threads are %v (whole: %v, %v)", kinds, whole, names)
		}
	}
}

// TestOldRuntime records a runtime whose code is not known: that is said, and no stack with its code
// is called complete.
func TestOldRuntime(t *testing.T) {
	target := dotnet{major: 3}.start(t, fixture.CSharp(t, 9, "testdata/Chain.cs"), nil)
	p := recorded(t, record.Options{PIDs: []int{target.PID()}, Duration: time.Second, Hz: 199, Events: []string{"cpu"}})
	if notes := strings.Join(p.Meta.Notes, "\n"); !strings.Contains(notes, "CoreCLR 3.1.2") {
		t.Errorf("the notes do not say that the runtime is not known: %s", notes)
	}
	if q := p.Quality(); q.Complete > q.Samples/10 {
		t.Errorf("stacks of unknown code are called complete: %+v", q)
	}
}
