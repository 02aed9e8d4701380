package dotnet_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/clrgc"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/runtimes"
)

// observed keeps what a runtime reports.
type observed struct {
	pid   int
	start uint64
	list  []profile.Observation
	notes []string

	background bool   // a background collection was compared
	last       uint64 // the collection that was compared last
}

var _ runtimes.Observations = (*observed)(nil)

func (o *observed) PID() int                      { return o.pid }
func (o *observed) Observe(s profile.Observation) { o.list = append(o.list, s) }
func (o *observed) Note(line string)              { o.notes = append(o.notes, line) }
func (o *observed) Hurry()                        {}
func (o *observed) Start() uint64                 { return o.start }
func (o *observed) Clock() uint64                 { return clock() }
func (o *observed) Seen(kind uint16, values ...profile.Value) {
	o.Observe(profile.Observation{Kind: kind, Time: clock() - o.start, Values: values})
}

// clock returns the monotonic clock in ns.
func clock() uint64 { return clockOf(unix.CLOCK_MONOTONIC) }

func clockOf(id int32) uint64 {
	var ts unix.Timespec
	if unix.ClockGettime(id, &ts) != nil {
		return 0
	}
	return uint64(ts.Nano())
}

// find returns the last observation of a kind whose value at an index is a number or a text.
func (o *observed) find(kind uint16, value int, is profile.Value) *profile.Observation {
	for i := len(o.list) - 1; i >= 0; i-- {
		if s := &o.list[i]; s.Kind == kind && s.Values[value] == is {
			return s
		}
	}
	return nil
}

// said reads what Collects.cs prints.
func said(t *testing.T, line string) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	for _, f := range strings.Fields(line) {
		name, text, _ := strings.Cut(f, "=")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("it says %q: %v", f, err)
		}
		if n >= 0 {
			out[name] = uint64(n)
		}
	}
	return out
}

// TestCollections compares what is seen of collections and the heap with what the program itself says of
// them, and with the time in which another of its threads stood still.
func TestCollections(t *testing.T) {
	for _, on := range dotnets {
		assembly := on.compile(t, "testdata/Collects.cs")
		for _, env := range []string{"", "DOTNET_gcServer=1", "DOTNET_gcConcurrent=0", "DOTNET_GCgen0size=4000000"} {
			if (on.windows || env != "" && (on.major != 9 || env != "DOTNET_gcServer=1")) && !fixture.Full(t) {
				continue
			}
			t.Run(fmt.Sprint(on, " ", env), func(t *testing.T) {
				t.Parallel()
				compareCollections(t, on, on.run(t, assembly, []string{env}), env == "DOTNET_gcServer=1", env != "DOTNET_gcConcurrent=0")
			})
		}
	}
}

func compareCollections(t *testing.T, on dotnet, target *fixture.Program, server, background bool) {
	tooLittle := fixture.Watch(t)
	said := func(t *testing.T, line string) map[string]uint64 {
		says := said(t, line)
		if on.windows { // the program's clock is Wine's performance counter, which is not slewed
			ahead := clock() - clockOf(unix.CLOCK_MONOTONIC_RAW)
			says["gapStart"] += ahead
			says["gapEnd"] += ahead
		}
		return says
	}
	first := said(t, target.Line())
	p, err := attach.Open(target.PID(), native.NewFiles())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	vm, ok := runtimes.Ability[runtimes.Observed](p.Runtimes)
	if !ok {
		t.Fatalf("%s has no observations", p.Title())
	}
	o := &observed{pid: target.PID(), start: clock()}
	o.await(t, vm, first)
	for name, want := range map[string]bool{"System.GC.Concurrent": background, "System.GC.Server": server} {
		if s := o.find(profile.InitialSystemProperty, 0, profile.Text(name)); s == nil || s.Values[1].Text != fmt.Sprint(want) {
			t.Errorf("%s is %v, should be %v", name, s, want)
		}
	}
	for _, how := range "012b1a2" {
		before := clock()
		fmt.Fprintf(target, "%c", how)
		says := said(t, target.Line())
		// A collection may come or end after the program has said how things are: then it is asked again.
		fixture.Settles(t, 5, func() string {
			o.await(t, vm, says)
			wrong := o.compare(t, how, says, before, tooLittle)
			fmt.Fprint(target, "?")
			says = said(t, target.Line())
			return strings.Join(wrong, "; ")
		})
	}
	if !background && o.background {
		t.Error("a background collection was seen where there are none")
	} else if background && !o.background {
		t.Log("the runtime collected nothing in the background")
	}
	if len(o.notes) > 0 {
		t.Errorf("it notes %q", o.notes)
	}
}

// await observes until the counts are those that the program says.
func (o *observed) await(t *testing.T, vm runtimes.Observed, says map[string]uint64) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		vm.Observe(true, o)
		if o.counts() == [3]uint64{says["gc0"], says["gc1"], says["gc2"]} {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v collections are seen; %q; the program says %v", o.counts(), o.notes, says)
		}
	}
}

func (o *observed) counts() (n [3]uint64) {
	for g := range n {
		if s := o.find(profile.CollectorStatistics, 0, profile.Text(fmt.Sprint("Gen", g))); s != nil {
			n[g] = s.Values[1].Number
		}
	}
	return n
}

// compare compares the last collection with what the program says, and returns what differs.
func (o *observed) compare(t *testing.T, how rune, says map[string]uint64, before uint64, tooLittle func(string, ...any)) (wrong []string) {
	t.Helper()
	differs := func(text string, args ...any) { wrong = append(wrong, fmt.Sprintf(text, args...)) }
	paused := o.find(profile.CollectorStatistics, 0, profile.Text("Gen0")).Values[2].Number
	if want, ok := says["paused"]; ok && paused != 100*want {
		differs("it stood still for %d ns, says %d", paused, 100*want)
	}
	memory := o.find(profile.HeapStatistics, 2, profile.Number(profile.UnknownNumber))
	if memory == nil {
		return []string{"the size of the heap is not seen"}
	}
	if used := memory.Values[0].Number; used > says["memory"]+1<<20 || used+1<<20 < says["memory"] || used < 20<<20 {
		differs("the heap has %d bytes, the program says %d", used, says["memory"])
	}
	kind := 0
	for k := 1; k <= 3; k++ {
		if i := says[fmt.Sprintf("k%d_index", k)]; i > 0 && (kind == 0 || i > says[fmt.Sprintf("k%d_index", kind)]) {
			kind = k
		}
	}
	if kind == 0 {
		t.Logf("%c: %d collections, %d ns; the program can say no more", how, o.counts()[0], paused)
		return wrong
	}
	say := func(name string) uint64 { return says[fmt.Sprintf("k%d%s", kind, name)] }
	id := say("_index")
	if got := memory.Values[1].Number; got != say("_totalCommittedBytes") {
		differs("%d bytes are committed, the program says %d", got, say("_totalCommittedBytes"))
	}
	g := o.find(profile.GarbageCollection, 0, profile.Number(id))
	if g == nil {
		if id == says["gc0"] {
			differs("collection %d is not seen", id)
		} else {
			t.Logf("%c: collection %d has ended, and another one has begun: %d", how, id, says["gc0"])
		}
		return wrong
	}
	name := fmt.Sprint("Gen", say("_generation"))
	if say("_concurrent") != 0 {
		name += " background"
	}
	pauses := [2]uint64{100 * say("_pauseDuration0"), 100 * say("_pauseDuration1")}
	if g.Values[1].Text != name || g.Values[3].Number != pauses[0]+pauses[1] || g.Values[4].Number != max(pauses[0], pauses[1]) {
		differs("collection %d is %v, should be %s with pauses of %v", id, g, name, pauses)
	}
	o.background = o.background || kind == 3
	if id == o.last {
		before = 0 // nothing was collected
	}
	if kind != 3 && g.Duration != pauses[0] || g.Time+o.start < before || g.Time+g.Duration+o.start > clock() {
		differs("collection %d takes %d ns from %d on, it was asked for at %d", id, g.Duration, g.Time+o.start, before)
	}
	// The other thread stood still for longest during a full collection, unless it had no CPU for longer.
	begin, end := g.Time+o.start, g.Time+g.Duration+o.start
	const slack = 50e6 // to stop the threads takes time
	if how == '2' && before > 0 && (end < says["gapStart"] || end > says["gapEnd"]+1e5 || begin > says["gapEnd"] || begin+slack < says["gapStart"]) {
		tooLittle("full collection %d is from %d to %d; another thread stood still from %d to %d", id, begin, end, says["gapStart"], says["gapEnd"])
	}
	after := o.find(profile.GCHeapSummary, 0, profile.Number(id))
	if want := say("_heapSizeBytes") - say("_fragmentedBytes"); after == nil || after.Values[1].Text != "After GC" || after.Values[2].Number != want {
		differs("after collection %d the heap has %v, the program says %d", id, after, want)
	}
	parts, summed := 0, uint64(0)
	for _, s := range o.list {
		if s.Kind != profile.GenerationSummary || s.Values[0].Number != id {
			continue
		}
		for i, field := range []string{"SizeBeforeBytes", "FragmentationBeforeBytes", "SizeAfterBytes", "FragmentationAfterBytes"} {
			if want, ok := says[fmt.Sprintf("k%d_g%d%s", kind, parts%5, field)]; ok && s.Values[2+i].Number != want {
				differs("%s: %s is %d, the program says %d", s.Values[1].Text, field, s.Values[2+i].Number, want)
			}
		}
		summed += s.Values[2].Number - s.Values[3].Number
		parts++
	}
	if prior := o.find(profile.GCHeapSummary, 1, profile.Text("Before GC")); parts != clrgc.NumHeaps || prior == nil || prior.Values[2].Number != summed {
		differs("before collection %d the heap has %v, its %d parts %d", id, prior, parts, summed)
	}
	t.Logf("%c: collection %d, %s, pauses %v, from %d to %d; stood still from %d to %d; heap %d, committed %d, %d parts",
		how, id, name, pauses, begin, end, says["gapStart"], says["gapEnd"], memory.Values[0].Number, memory.Values[1].Number, parts)
	if len(wrong) == 0 {
		o.last = id
	}
	return wrong
}

// TestRecordedCollections records a program that collects all the time: the recording has collections,
// their pauses and the size of the heap, and the counts at its end are not more than the program has.
func TestRecordedCollections(t *testing.T) {
	for _, on := range dotnets {
		if on != (dotnet{major: 10}) && !fixture.Full(t) {
			continue
		}
		t.Run(on.String(), func(t *testing.T) {
			t.Parallel()
			tooLittle := fixture.Watch(t)
			target := on.start(t, on.compile(t, "testdata/Loads.cs"), nil, "allocation")
			p := recorded(t, record.Options{PIDs: []int{target.PID()}, Duration: 2500 * time.Millisecond, Hz: 199, Events: []string{"cpu"}})
			seen := map[uint16]int{}
			var first, last [2]uint64 // collections, ns
			sum := uint64(0)
			for _, s := range p.Observations {
				seen[s.Kind]++
				switch {
				case s.Kind == profile.CollectorStatistics && s.Values[0].Text == "Gen0":
					if last = [2]uint64{s.Values[1].Number, s.Values[2].Number}; first[0] == 0 {
						first = last
					}
				case s.Kind == profile.GarbageCollection:
					sum += s.Values[3].Number
				}
			}
			t.Logf("%d collections were recorded, %d counted; pauses of %d ns were recorded, %d counted; %d sizes of the heap; %q",
				seen[profile.GarbageCollection], last[0]-first[0], sum, last[1]-first[1], seen[profile.HeapStatistics], p.Meta.Notes)
			if seen[profile.GarbageCollection] == 0 || last[0]-first[0] < 5 {
				tooLittle("%d collections, %d counted", seen[profile.GarbageCollection], last[0]-first[0])
				return
			}
			if uint64(seen[profile.GarbageCollection]) > last[0]-first[0] || sum > last[1]-first[1] {
				t.Errorf("more was recorded than the runtime counts")
			}
			if seen[profile.HeapStatistics] == 0 || seen[profile.InitialSystemProperty] != 2 || seen[profile.GCPhasePause] == 0 {
				t.Errorf("seen are %v", seen)
			}
		})
	}
}
