package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// week writes a made-up history of a machine with two full CPUs at 19 Hz: services, most of whose
// samples are in some of many stacks.
func week(t *testing.T, dir string, services, days int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(20, 1))
	w := create(t, dir, Options{})
	zipf := rand.NewZipf(rnd, 1.2, 4, 3999)
	which := rand.NewZipf(rnd, 1.1, 8, uint64(services-1))
	start := noon.Truncate(24 * time.Hour)
	type deep []int
	stacks := make([]deep, 4000)
	for i := range stacks {
		for range 10 + rnd.IntN(30) {
			stacks[i] = append(stacks[i], rnd.IntN(60))
		}
	}
	// A profile of half a minute comes again each half hour.
	parts := make([]*profile.Profile, 60)
	for i := range parts {
		b := profile.NewBuilder()
		*b.Meta() = profile.Meta{Duration: 30 * time.Second}
		known := map[int]uint32{}
		for range 1140 {
			of := int(which.Uint64())
			th, ok := known[of]
			if !ok {
				b.AddProcess(profile.Process{PID: 100 + of, Command: fmt.Sprintf("program%d", of)})
				th = b.Thread(100+of, 100+of, "main")
				known[of] = th
			}
			node := uint32(profile.RootNode)
			for depth, f := range stacks[zipf.Uint64()] {
				node = b.Node(node, b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: fmt.Sprintf("com.example.Class%d.method%d", depth, f)}), BCI: -1, Kind: walk.KindC2}))
			}
			b.Add(profile.Sample{Time: uint64(rnd.Int64N(30e9)), Weight: 52_631_579 + uint64(rnd.IntN(120))*20_000, Node: node, Thread: th})
		}
		parts[i] = b.Finish()
		parts[i].Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 52_631_579}}
	}
	for i := range days * 2880 {
		put(t, w, parts[i%len(parts)], start.Add(time.Duration(i)*30*time.Second))
	}
	t.Logf("%d days take %.1f MB, %.2f bytes a sample", days, float64(w.Size())/1e6, float64(w.Size())/float64(days*2880*1140))
	if day := w.Size() / int64(days); days > 1 && day > 30e6 {
		t.Errorf("a day takes %.1f MB", float64(day)/1e6)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A question about a service is answered in the time that a page may take, on made-up weeks.
func TestQuestionsAboutWeeks(t *testing.T) {
	fixture.OnlyFull(t, "TestServicesAndRanges")
	for _, services := range []int{20, 1000} {
		dir := t.TempDir()
		week(t, dir, services, 7)
		r := open(t, dir)
		begin := noon.Truncate(24 * time.Hour)
		for _, c := range []struct {
			length, most time.Duration
		}{{time.Hour, 50 * time.Millisecond}, {24 * time.Hour, 100 * time.Millisecond}, {168 * time.Hour, 500 * time.Millisecond}} {
			fixture.Attempts(t, 9, func() string {
				at := time.Now()
				p, err := r.Profile(Query{From: begin, To: begin.Add(c.length), Service: "service of program0", Keep: profile.KeepSums})
				took := time.Since(at)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d services: the profile of one in %v, %d samples, takes %v", services, c.length, p.SampleCount(), took)
				if took > c.most {
					return fmt.Sprintf("%d services: the profile of one in %v takes %v, more than %v", services, c.length, took, c.most)
				}
				return ""
			})
			at := time.Now()
			if _, err := r.Services(begin, begin.Add(c.length)); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d services: all services in %v take %v", services, c.length, time.Since(at))
		}
	}
}
