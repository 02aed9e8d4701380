package profiletest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Wide returns a profile of a program with very many methods and threads, each of which has at
// least one sample, over a minute.
func Wide(methods, threads, samples int) *profile.Profile {
	r := rand.New(rand.NewPCG(5, 23))
	b := profile.NewBuilder()
	p := b.Profile()
	p.Meta = profile.Meta{Start: time.Date(2026, 11, 20, 14, 3, 7, 0, time.UTC), Duration: time.Minute, Command: "java -jar everything.jar"}
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 10101010}}
	p.Processes = []profile.Process{{PID: 4242, Command: "java -jar everything.jar", Runtime: "hotspot 21.0.1"}}
	frames := make([]uint32, methods)
	for i := range frames {
		f := b.Func(profile.Func{Name: fmt.Sprintf("com.example.part%d.module%d.Service%d.method%d", i%7, i%113, i/16, i), File: fmt.Sprintf("Service%d.java", i/16)})
		frames[i] = b.Frame(profile.Frame{Func: f, Kind: []walk.Kind{walk.KindC2, walk.KindC1, walk.KindInterpreted, walk.KindInlined}[i%4], Line: int32(10 + i%500), BCI: -1})
	}
	for i := range threads {
		b.Thread(4242, 4243+i, fmt.Sprintf("pool-%d-thread-%d", i/64, i))
	}
	// Every path goes through four of the methods; the last one is each of the methods in turn.
	pick := func() uint32 { return frames[int(r.ExpFloat64()*float64(methods)/20)%methods] }
	for i := range max(samples, methods, threads) {
		n := uint32(profile.RootNode)
		for range 3 {
			n = b.Node(n, frames[r.IntN(min(12, methods))])
		}
		last := frames[i%methods]
		if i >= methods {
			last = pick()
		}
		thread := uint32(i % threads)
		if i >= threads {
			thread = uint32(int(r.ExpFloat64()*float64(threads)/8) % threads)
		}
		b.Add(profile.Sample{Time: uint64(i) * uint64(time.Minute) / uint64(max(samples, methods, threads)), Weight: 10101010, Node: b.Node(n, last), Thread: thread, State: profile.StateRunning})
	}
	return b.Finish()
}
