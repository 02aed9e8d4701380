package hsperfdata

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/hotspot/metadata"
	"github.com/candid-profiler/candid/internal/hotspot/threads"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// startParked starts the program Parked in a VM of that JDK.
func startParked(t testing.TB, major int) *vmstructs.VM {
	t.Helper()
	classes := fixture.Classes(t, 8, "-g", "../testdata/Parked.java")
	started := fixture.Start(t, exec.Command(fixture.JDKTool(t, major, "java"), "-Xmx256m", "-cp", classes, "Parked"))
	started.Await("ready")
	p, err := target.Open(started.PID())
	if err != nil {
		t.Fatal(err) // it is a child
	}
	t.Cleanup(func() { p.Close() })
	vm, _, err := vmstructs.Open(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// countersOf waits until a VM has counters.
func countersOf(t testing.TB, vm *vmstructs.VM) *Counters {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := Open(vm)
		if err == nil {
			return c
		}
		if !errors.Is(err, vmstructs.ErrNotReady) || time.Since(begin) > time.Minute {
			t.Fatal(err)
		}
	}
}

// The VM's counters are those that its program prints, in every version.
func TestCounters(t *testing.T) {
	for _, major := range fixture.JDKs(t, 8) {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			vm := startParked(t, major)
			names := threads.New(vm, metadata.NewHeap(vm), nil).ThreadNames()
			c := countersOf(t, vm)
			if got := c.Text("sun.rt.javaCommand"); got != "Parked" {
				t.Errorf("it runs %q", got)
			}
			if args := c.Text("java.rt.vmArgs"); !strings.Contains(args, "-Xmx256m") {
				t.Errorf("its arguments are %q", args)
			}
			// The test's program waits in threads of its own.
			if n, ok := c.Number("java.threads.live"); !ok || n < int64(len(names))/2 || n > 1000 {
				t.Errorf("%d threads live, %d are named", n, len(names))
			}
			classes, _ := c.Number("java.cls.loadedClasses")
			shared, _ := c.Number("java.cls.sharedLoadedClasses")
			if classes+shared < 100 || classes+shared > 100_000 {
				t.Errorf("%d and %d classes", classes, shared)
			}
			if begin, _ := c.Number("sun.rt.createVmBeginTime"); time.Since(time.UnixMilli(begin)).Abs() > time.Hour { // the clock may be set meanwhile
				t.Errorf("it began at %d", begin)
			}
			if _, ok := c.Number("sun.rt.javaCommand"); ok {
				t.Error("a text is a number")
			}
			if !c.Read() {
				t.Error("a second look fails")
			}
			// A range of it is read with the same result as the whole.
			const looked = "java.cls.loadedClasses"
			before, ok := c.Number(looked)
			if span := c.SpanOf("java.threads.live", looked, "no.such"); !ok || !c.ReadSpan(span) || int(span.end-span.off) >= len(c.raw) {
				t.Errorf("%d of %d bytes cannot be read", span.end-span.off, len(c.raw))
			}
			part, _ := c.Number(looked)
			if c.Read(); part < before {
				t.Errorf("%s fell from %d to %d", looked, before, part)
			}
			if all, _ := c.Number(looked); all < part {
				t.Errorf("%s fell from %d to %d", looked, part, all)
			}
			if !c.ReadSpan(c.SpanOf()) || !c.ReadSpan(c.SpanOf("no.such")) {
				t.Error("nothing cannot be read")
			}
			set := map[string]vmstructs.SetFlag{}
			for _, f := range vm.SetFlags() {
				set[f.Name] = f
			}
			if f := set["MaxHeapSize"]; f.Value != fmt.Sprint(256<<20) || f.Origin != "Command line" {
				t.Errorf("%+v", f)
			}
			if f, ok := set["UseCountedLoopSafepoints"]; ok && f.Origin == "Default" {
				t.Errorf("%+v", f)
			}
		})
	}
}

// memoryOf is a range of memory at address 4096.
type memoryOf []byte

func (m memoryOf) ReadAt(p []byte, addr uint64) error {
	if addr < 4096 || addr-4096 > uint64(len(m)) || uint64(len(p)) > uint64(len(m))-(addr-4096) {
		return target.ErrMemory
	}
	copy(p, m[addr-4096:])
	return nil
}

// FuzzCounters reads arbitrary memory as counters.
func FuzzCounters(f *testing.F) {
	head := []byte{0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 2, 0, 0, 0}
	number := []byte{32, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 'J', 0, 1, 1, 24, 0, 0, 0, 'a', 'b', 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}
	text := []byte{32, 0, 0, 0, 20, 0, 0, 0, 4, 0, 0, 0, 'B', 0, 1, 1, 24, 0, 0, 0, 'c', 0, 0, 0, 'h', 'i', 0, 0, 0, 0, 0, 0}
	whole := append(append(head, number...), text...)
	f.Add([]byte(whole))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &Counters{vm: &vmstructs.VM{Mem: vmstructs.Memory{Reader: memoryOf(b)}}, start: 4096}
		for range 2 { // the second time with what the first has learned
			if !c.Read() {
				return
			}
		}
		for name := range c.at {
			c.Number(name)
			c.Text(name)
		}
		c.Each("a", func(string, string) {})
		if string(b) == string(whole) {
			if n, ok := c.Number("ab"); n != 7 || !ok || c.Text("c") != "hi" {
				t.Error(n, ok, c.Text("c"))
			}
		}
	})
}

func BenchmarkCountersRead(b *testing.B) {
	c := countersOf(b, startParked(b, 21))
	b.ReportAllocs()
	for b.Loop() {
		if !c.Read() {
			b.Fatal("it cannot be read")
		}
	}
}
