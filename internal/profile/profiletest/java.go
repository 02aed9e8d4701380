// Package profiletest makes profiles for tests: their content is known by
// construction, and looks like that of a real program.
package profiletest

import (
	"fmt"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Period is the weight of each sample: 1 ms of CPU time.
const Period = uint64(time.Millisecond)

// Frame is one logical frame of a stack.
type Frame struct {
	Name   string
	Module string
	Kind   walk.Kind
	Prov   walk.Provenance
	Flags  walk.FrameFlags
	Line   int32
	NoName bool
}

// Stack is a stack, outermost frame first, and how it was seen.
type Stack struct {
	Thread string
	Count  int // samples
	Frames []Frame
	End    walk.End
	Flags  profile.SampleFlags
}

func interpreted(name string, line int32) Frame {
	return Frame{Name: name, Kind: walk.KindInterpreted, Line: line}
}
func c1(name string, line int32) Frame { return Frame{Name: name, Kind: walk.KindC1, Line: line} }
func c2(name string, line int32) Frame { return Frame{Name: name, Kind: walk.KindC2, Line: line} }
func inlined(name string, line int32) Frame {
	return Frame{Name: name, Kind: walk.KindInlined, Line: line}
}
func native(module, name string) Frame {
	return Frame{Name: name, Module: module, Kind: walk.KindNative}
}
func kernel(name string) Frame {
	return Frame{Name: name, Module: "[kernel]", Kind: walk.KindKernel}
}

// JavaStacks are the stacks of Java: 10,000 samples of an imagined server.
func JavaStacks() []Stack {
	start := []Frame{
		native("libc.so.6", "start_thread"), native("libjvm.so", "thread_native_entry"),
		native("libjvm.so", "JavaThread::thread_main_inner"), {Name: "call_stub", Kind: walk.KindStub},
		interpreted("java.lang.Thread.run", 840),
	}
	with := func(base []Frame, more ...Frame) []Frame { return append(base[:len(base):len(base)], more...) }
	worker := with(start, interpreted("com.example.shop.Worker.loop", 55), c1("com.example.shop.Handler.handle", 101))
	search := with(worker, c2("com.example.shop.Index.search", 210), inlined("com.example.shop.Index.score", 233))
	fib := c2("com.example.shop.Rules.evaluate", 77)
	vm := []Frame{native("libc.so.6", "start_thread"), native("libjvm.so", "thread_native_entry"), native("libjvm.so", "GCTaskThread::run")}
	coarse := inlined("java.util.HashMap.hash", 338)
	return []Stack{
		{Thread: "http-worker-1", Count: 2400, Frames: with(search, inlined("java.util.HashMap.get", 556), coarse)},
		{Thread: "http-worker-1", Count: 1100, Frames: with(search, inlined("java.lang.Math.fma", 2003))},
		{Thread: "http-worker-2", Count: 1500, Frames: with(search, inlined("java.util.HashMap.get", 557))},
		{Thread: "http-worker-2", Count: 1200, Frames: with(worker, fib, fib, fib, fib)},
		{Thread: "http-worker-2", Count: 300, Frames: with(worker, fib, fib, c2("java.lang.String.equals", 1866))},
		{Thread: "http-worker-1", Count: 700, Flags: profile.Stitched, Frames: with(worker,
			interpreted("com.example.shop.Json.write", 40), Frame{Name: "java.io.FileOutputStream.writeBytes", Kind: walk.KindNativeMethod},
			native("libjava.so", "Java_java_io_FileOutputStream_writeBytes"), native("libjava.so", "handleWrite"),
			native("libc.so.6", "__write"), kernel("entry_SYSCALL_64_after_hwframe"), kernel("do_syscall_64"), kernel("ksys_write"), kernel("vfs_write"))},
		{Thread: "http-worker-1", Count: 500, Frames: with(worker, c2("com.example.shop.Image$$Lambda.apply", 0), Frame{Name: "jbyte_disjoint_arraycopy", Kind: walk.KindStub})},
		{Thread: "http-worker-2", Count: 400, Flags: profile.Guessed, Frames: with(worker,
			Frame{Name: "libzip.so+0x4a20", Module: "libzip.so", Kind: walk.KindNative, Prov: walk.Heuristic, NoName: true})},
		{Thread: "GC Thread#0", Count: 1500, Frames: with(vm, native("libjvm.so", "G1ParScanThreadState::trim_queue_to_threshold"))},
		{Thread: "C2 CompilerThread0", Count: 300, Frames: with(vm[:2], native("libjvm.so", "CompileBroker::compiler_thread_loop"), native("libjvm.so", "PhaseIdealLoop::build_and_optimize"))},
		{Thread: "http-worker-2", Count: 60, End: walk.EndTruncated, Frames: []Frame{c2("com.example.shop.Tree.depth", 9), c2("com.example.shop.Tree.depth", 9)}},
		{Thread: "http-worker-2", Count: 30, End: walk.EndBadPC, Frames: []Frame{c2("com.example.shop.Index.search", 211)}},
		{Thread: "http-worker-2", Count: 10, End: walk.EndNoRule, Flags: profile.Guessed, Frames: []Frame{native("libz.so.1", "inflate_fast")}},
	}
}

// Java returns the profile of JavaStacks, with the stacks alternating over time.
func Java() *profile.Profile {
	p := New(JavaStacks())
	p.Meta.Start = time.Date(2026, 5, 4, 12, 30, 0, 0, time.UTC)
	p.Meta.Duration = 10 * time.Second
	p.Meta.Host = "build-7"
	p.Meta.Engine = "perf"
	p.Meta.Describe = "perf cpu-clock on 2 CPUs, live stack copied by BPF"
	p.Meta.Command = "java -Xmx2g -jar shop.jar --port 8080"
	p.Meta.Version = "0.1.0"
	p.Meta.Cost = profile.Cost{Copying: 31 * time.Millisecond, TargetCPU: 10 * time.Second, OwnCPU: 142 * time.Millisecond, Memory: 48 << 20, FirstWalked: 60 * time.Millisecond}
	p.Meta.Notes = []string{"1000 Hz keeps step with the kernel's tick: 997 Hz is used"}
	p.Processes = []profile.Process{{PID: 4711, Command: "java -Xmx2g -jar shop.jar --port 8080", Runtime: "hotspot 17.0.15"}}
	p.Losses = profile.Losses{Lost: 12, Throttled: 3}
	return p
}

// New returns the profile of the given stacks.
func New(stacks []Stack) *profile.Profile {
	b := profile.NewBuilder()
	p := b.Profile()
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: Period}}
	left := make([]int, len(stacks))
	all := 0
	for i, s := range stacks {
		left[i] = s.Count
		all += s.Count
	}
	tids := map[string]int{}
	for done, now := 0, uint64(0); done < all; {
		for i, s := range stacks {
			if left[i] == 0 {
				continue
			}
			left[i]--
			done++
			now += Period
			tid, ok := tids[s.Thread]
			if !ok {
				tid = 4712 + len(tids)
				tids[s.Thread] = tid
			}
			node := uint32(profile.RootNode)
			for j, f := range s.Frames {
				file := ""
				if f.Line > 0 {
					file = fmt.Sprintf("F%d.java", len(f.Name)%7)
				}
				fn := b.Func(profile.Func{Name: f.Name, Module: f.Module, File: file, NoName: f.NoName})
				addr := uint64(0)
				if f.Kind == walk.KindNative {
					addr = uint64(0x1000 + 16*j)
				}
				node = b.Node(node, b.Frame(profile.Frame{Func: fn, Line: f.Line, BCI: -1, Kind: f.Kind, Prov: f.Prov, Flags: f.Flags, Addr: addr}))
			}
			th := b.Thread(4711, tid, s.Thread)
			p.Threads[th].KernelCPU += Period
			p.Threads[th].Kind = threadKind(s.Thread)
			b.Add(profile.Sample{Time: now, Weight: Period, Node: node, Thread: th, State: profile.StateRunning, End: s.End, Flags: s.Flags})
		}
	}
	return b.Profile()
}

// threadKind returns what a thread of Java is for.
func threadKind(name string) string {
	switch {
	case strings.HasPrefix(name, "GC "):
		return "gc"
	case strings.Contains(name, "Compiler"):
		return "compiler"
	}
	return "java"
}
