package profiletest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Hostile are names that no sane program has. They must be shown as text.
var Hostile = []string{
	`</script><script>document.title="owned"</script>`,
	`<img src=x onerror='document.title="owned"'>`,
	"line\nbreak\x00nul\x1b[31mred\u202Eesrever\u200b",
	`quote"'&amp;` + "`${1}`\\",
	"\xff\xfe not UTF-8",
	"日本語クラス.メソッド",
}

// Server returns a profile like that of a Java server: threads whose stacks go from native start
// code through interpreted and compiled Java, with inlined methods, into stubs, native libraries
// and the kernel. It has about as many nodes as are asked for, and depth bounds the frames of a
// stack.
func Server(nodes, samples, depth int) *profile.Profile {
	r := rand.New(rand.NewPCG(7, 11))
	b := profile.NewBuilder()
	p := b.Profile()
	p.Meta = profile.Meta{
		Start: time.Date(2026, 11, 20, 14, 3, 7, 0, time.UTC), Duration: 30 * time.Second, Host: "build-17",
		Engine: "perf+bpf", Describe: "cpu-clock at 99 Hz, exact stack copies by BPF",
		Command: "java -Xmx2g -jar shop-service.jar --port 8080", Version: "0.1",
		Notes: []string{"kernel symbols are hidden (kernel.kptr_restrict=2): kernel frames have no names", "DebugNonSafepoints is off: positions inside inlined code are coarse"},
	}
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 10101010}, {Name: "alloc", Kind: profile.EventAlloc, Unit: "bytes", Period: 524288}}
	p.Processes = []profile.Process{{PID: 4242, Command: "java -jar shop-service.jar", Runtime: "hotspot 17.0.15"}}
	p.Losses.Lost = 12

	packages := []string{"java.util.", "java.util.concurrent.", "java.lang.", "java.nio.channels.", "com.example.shop.order.",
		"com.example.shop.catalogue.search.", "org.apache.catalina.core.", "org.h2.engine.", "io.netty.channel.nio.", "com.fasterxml.jackson.databind.ser."}
	classes := []string{"HashMap", "ThreadPoolExecutor", "OrderService", "StandardWrapperValve", "JdbcPreparedStatement", "BeanSerializer",
		"CatalogueIndex", "String", "ConcurrentHashMap$Node", "NioEventLoop", "AbstractQueuedSynchronizer", "OrderRepository$$Lambda", "PriceCalculator", "SessionLocal"}
	methods := []string{"get", "put", "runWorker", "execute", "invoke", "doFilter", "serialize", "lambda$process$0", "compareTo", "indexOf", "select", "computeIfAbsent", "findMatchingProducts", "hashCode", "<init>", "query"}
	kinds := []walk.Kind{walk.KindInterpreted, walk.KindC1, walk.KindC2, walk.KindC2, walk.KindC2, walk.KindInlined, walk.KindInlined, walk.KindAOT, walk.KindCompiled}

	var java, native, kernel []uint32
	frame := func(f profile.Func, kind walk.Kind, prov walk.Provenance, flags walk.FrameFlags, line int32) uint32 {
		return b.Frame(profile.Frame{Func: b.Func(f), Kind: kind, Prov: prov, Flags: flags, Line: line, BCI: -1})
	}
	for range max(400, nodes/100) {
		c := classes[r.IntN(len(classes))]
		f := profile.Func{Name: packages[r.IntN(len(packages))] + c + "." + methods[r.IntN(len(methods))], Signature: "(Ljava/lang/Object;)V", File: c + ".java"}
		if r.IntN(3) == 0 {
			f.Name += fmt.Sprint(r.IntN(nodes/200 + 5))
		}
		java = append(java, frame(f, kinds[r.IntN(len(kinds))], walk.Exact, walk.FrameFlags(r.IntN(2))*walk.Coarse, int32(20+r.IntN(900))))
	}
	for i, n := range []string{"Monitor::lock(Thread*)", "G1ParScanThreadState::trim_queue_to_threshold(unsigned int)", "CompileBroker::compiler_thread_loop()",
		"std::vector<std::pair<int, Foo>, std::allocator<std::pair<int, Foo> > >::push_back(int const&)", "JavaCalls::call_helper(JavaValue*, methodHandle const&, JavaCallArguments*, JavaThread*)",
		"deflate_fast", "__memmove_avx_unaligned_erms", "epoll_wait", "libz.so.1.2.13+0x4f20"} {
		prov := walk.Exact
		if i%4 == 1 {
			prov = walk.Derived
		} else if i%4 == 3 {
			prov = walk.Heuristic
		}
		native = append(native, frame(profile.Func{Name: n, Module: "libjvm.so", NoName: i == 8}, walk.KindNative, prov, 0, 0))
	}
	for _, n := range []string{"entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__x64_sys_futex", "futex_wait", "schedule", "tcp_sendmsg", "copy_user_generic"} {
		kernel = append(kernel, frame(profile.Func{Name: n, Module: "[kernel]"}, walk.KindKernel, walk.Exact, 0, 0))
	}
	for _, n := range Hostile {
		java = append(java, frame(profile.Func{Name: n, File: n, Module: n, Signature: n}, walk.KindC2, walk.Exact, 0, 1))
	}
	stub := frame(profile.Func{Name: "jlong_disjoint_arraycopy"}, walk.KindStub, walk.Exact, 0, 0)
	wrapper := frame(profile.Func{Name: "java.net.SocketOutputStream.socketWrite0", File: "SocketOutputStream.java"}, walk.KindNativeMethod, walk.Exact, 0, 0)
	start := frame(profile.Func{Name: "start_thread", Module: "libc.so.6"}, walk.KindNative, walk.Exact, 0, 0)
	run := frame(profile.Func{Name: "java.lang.Thread.run", File: "Thread.java"}, walk.KindInterpreted, walk.Exact, 0, 840)
	call := frame(profile.Func{Name: "call_stub"}, walk.KindStub, walk.Exact, 0, 0)

	names := []string{"main", "http-nio-8080-exec-%d", "http-nio-8080-exec-%d", "http-nio-8080-exec-%d", "ForkJoinPool.commonPool-worker-%d", "G1 Conc#%d", "C2 CompilerThread%d", "HikariPool-1 housekeeper"}
	var threads []uint32
	for i := range 24 {
		n := names[i%len(names)]
		if i%len(names) > 0 && i%len(names) < 7 {
			n = fmt.Sprintf(n, i)
		}
		threads = append(threads, b.Thread(4242, 4242+i, n))
	}
	threads = append(threads, b.Thread(4242, 5000, Hostile[0]))

	// Stacks: a random walk down a tree whose branches get ever less likely.
	var leaves []uint32
	hot := func(set []uint32, from uint32) uint32 {
		// A frame has few callees, and the first is far more frequent.
		return set[(int(from)*31+int(r.ExpFloat64()*1.6))%len(set)]
	}
	for b.Nodes() < nodes {
		n := b.Node(profile.RootNode, start)
		if r.IntN(8) == 0 {
			f := uint32(1)
			for range 2 + r.IntN(5) {
				f = hot(native, f+uint32(r.IntN(2)))
				n = b.Node(n, f)
			}
			leaves = append(leaves, n)
			continue
		}
		n = b.Node(b.Node(n, call), run)
		f := run
		for range 6 + r.IntN(depth) {
			f = hot(java, f)
			n = b.Node(n, f)
			if r.IntN(12) == 0 {
				leaves = append(leaves, n)
			}
		}
		switch r.IntN(6) {
		case 0:
			n = b.Node(n, stub)
		case 1:
			n = b.Node(b.Node(n, wrapper), native[r.IntN(len(native))])
			for _, k := range kernel[:2+r.IntN(5)] {
				n = b.Node(n, k)
			}
		case 2:
			n = b.Node(n, native[r.IntN(len(native))])
		}
		leaves = append(leaves, n)
	}
	for i := range samples {
		s := profile.Sample{Time: uint64(i) * 10101010, Weight: 10101010, Node: leaves[i%len(leaves)], Thread: threads[min(int(r.ExpFloat64()*5), len(threads)-1)], State: profile.StateRunning}
		if i >= len(leaves) {
			s.Node = leaves[int(r.ExpFloat64()*float64(len(leaves))/9)%len(leaves)]
		}
		switch x := r.IntN(1000); {
		case x < 4:
			s.End = walk.EndTruncated
		case x < 7:
			s.End = walk.EndBadPC
		case x < 8:
			s.End, s.Node = walk.EndUnread, profile.RootNode
		case x < 40:
			s.Flags = profile.Guessed
		case x < 60:
			s.Flags = profile.Stitched
		}
		if r.IntN(10) == 0 {
			s.Event, s.Weight = 1, uint64(1+r.IntN(1<<20))
		}
		b.Add(s)
	}
	return b.Profile()
}
