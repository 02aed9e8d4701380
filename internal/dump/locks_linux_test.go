package dump

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// Threads take the same monitor in turn, each for 20 ms. In no dump does one wait for what it
// holds, or for a thread that does not hold it, and the one that sleeps inside holds it.
func TestShortHolds(t *testing.T) {
	for i, major := range []int{8, 17, 21, 25} {
		for k, flag := range []string{"-Xint", "-XX:TieredStopAtLevel=1", "-XX:+TieredCompilation"} {
			if !fixture.Full(t) && k != i%3 {
				continue // each JDK with one set of flags, each set on one JDK
			}
			t.Run(fmt.Sprint(major, flag), func(t *testing.T) {
				pid := java(t, major, flag, "Held", "20")
				stock := regexp.MustCompile("^stock-")
				whole := 0
				for end := time.Now().Add(time.Minute); whole < 10 && time.Now().Before(end); {
					// The first dump of each process takes longest, because it reads the layouts.
					d, err := New(Options{PIDs: []int{pid}, Threads: stock})
					if err != nil {
						t.Fatal(err)
					}
					for range 2 {
						out, err := d.Take()
						if err != nil {
							t.Fatal(err)
						}
						wrong, all := held(&out.Processes[0])
						if wrong != "" {
							var text strings.Builder
							_ = out.WriteText(&text)
							t.Errorf("%s\n%s", wrong, text.String())
						}
						if all {
							whole++
						}
					}
					if err := d.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if whole < 10 {
					t.Errorf("only %d looks show who sleeps inside and the others waiting for it", whole)
				}
			})
		}
	}
}

// held returns what is wrong about the threads of Held.java, and whether one sleeps inside and the
// others wait for it.
func held(p *Process) (wrong string, all bool) {
	waits, sleeps := 0, 0
	for i := range p.Threads {
		t := &p.Threads[i]
		if t.Java == nil {
			continue
		}
		isStock := func(l Lock) bool { return l.Class == "Held$Stock" }
		has, w := slices.ContainsFunc(t.Java.Holds, isStock), t.Java.WaitsFor
		if w != nil && w.How == "waiting to lock" {
			if has || w.OwnerTID == t.TID {
				wrong += fmt.Sprintf("%q waits for what it holds; ", t.Name)
			}
			if o := p.byTID(w.OwnerTID); o != nil && (o.Java == nil || !slices.ContainsFunc(o.Java.Holds, isStock)) {
				wrong += fmt.Sprintf("%q waits for %q, which does not hold it; ", t.Name, w.Owner)
			} else if o != nil {
				waits++
			}
		}
		if t.Read == ReadAsleep && !t.Java.Changed && t.Java.State == "TIMED_WAITING (sleeping)" && t.has("Held.hold") {
			if sleeps++; !has {
				wrong += fmt.Sprintf("%q sleeps inside and does not hold it; ", t.Name)
			}
		}
	}
	if sleeps > 1 {
		wrong += "more than one sleep inside; "
	}
	if len(p.Deadlocks) > 0 {
		wrong += "a deadlock; "
	}
	return wrong, sleeps == 1 && waits == 3
}

// A thread in Thread.sleep sleeps and is not reported as blocked. With Java frames alone, its
// innermost frame is the method that it called.
func TestSleeps(t *testing.T) {
	pid := java(t, 17, "Locks", "0")
	d, err := New(Options{PIDs: []int{pid}, JavaFrames: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	out, err := d.Take()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := out.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	_, entry, _ := strings.Cut(text.String(), `"sleeping" `)
	entry, _, _ = strings.Cut(entry, "\n\n")
	if !regexp.MustCompile(`^#\d+ daemon prio=5 tid=\d+ cpu=\S+ sleeping in (futex|clock_nanosleep)\n   java.lang.Thread.State: TIMED_WAITING \(sleeping\)\n\tat java\.lang\.Thread\.sleep\(Native Method\)`).MatchString(entry) {
		t.Errorf("%s", entry)
	}
	p := &out.Processes[0]
	for i := range p.Threads {
		th := &p.Threads[i]
		if th.Kind == "java" && slices.ContainsFunc(th.Frames, func(f Frame) bool { return !f.java() }) {
			t.Errorf("%q: %+v", th.Name, th.Frames)
		}
		if th.Kind == "gc" && th.Read == ReadAsleep && len(th.Frames) == 0 {
			t.Errorf("%q has no frames", th.Name)
		}
	}
	for _, n := range p.Notes {
		if strings.Contains(n, "virtual") {
			t.Errorf("there are no virtual threads: %s", n)
		}
	}
}

// The owner of a lock is reported if it is a virtual thread, mounted or not, and also that
// unmounted ones are missing.
func TestVirtualOwners(t *testing.T) {
	for _, major := range []int{21, 25} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			dir := fixture.Classes(t, major, "-g", filepath.Join("testdata", "Virtuals.java"))
			pid := startUntilReady(t, fixture.JDKTool(t, major, "java"), "-Xmx256m", "-Djdk.virtualThreadScheduler.parallelism=2", "-cp", dir, "Virtuals")
			fixture.Settles(t, 10, func() string { // it may be about to be mounted or unmounted, or moved
				p := take(t, Options{PIDs: []int{pid}})
				var text strings.Builder
				_ = (&Dump{Processes: []Process{*p}}).WriteText(&text)
				for _, name := range []string{"sleeper", "spinner"} {
					th := p.named("wants-" + name)
					if th == nil || th.Java == nil || th.Java.WaitsFor == nil {
						return fmt.Sprintf("who wants what the %s has: %+v", name, th)
					}
					w := th.Java.WaitsFor
					if w.OwnerVirtual == nil || w.OwnerVirtual.Name != name || w.OwnerVirtual.ID == 0 || (w.OwnerTID != 0) != (name == "spinner") {
						return fmt.Sprintf("what the %s has: %+v, %+v", name, w, w.OwnerVirtual)
					}
					if o := p.byTID(w.OwnerTID); name == "spinner" && (o == nil || o.Java == nil || o.Java.Virtual == nil || o.Java.Virtual.ID != w.OwnerVirtual.ID) {
						return fmt.Sprintf("who carries the spinner: %+v", o)
					}
				}
				if !strings.Contains(text.String(), `"sleeper", not mounted`) || !strings.Contains(text.String(), `"spinner"`) || !strings.Contains(text.String(), "note: virtual threads are shown only while they are mounted") {
					return text.String()
				}
				return ""
			})
		})
	}
}
