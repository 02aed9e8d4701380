package java

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/hotspot/hsperfdata"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/runtimes"
)

// collections is the last known state of a VM's collectors. For each collector the VM records how
// often it ran, how long in total, and when the last run began and ended, by its own clock. If
// there was a single run since the VM was last read, some 100 ms before, everything about it is
// known; otherwise only how many there were and how long they took.
type collections struct {
	begun  bool
	of     []collectorSeen
	clock  vmClock
	looked uint64          // monotonic ns: before the counters were last read
	span   hsperfdata.Span // range of the counters of collections
	ids    uint64
}

type collectorSeen struct {
	name                           string // the VM's
	invocations, time, entry, exit string // names of counters
	count, told                    int64  // runs
}

// maxCollectors is more than any VM has.
const maxCollectors = 8

// collectorNames are the collectors each of whose runs is a collection that stops the program, by
// the VM's counter, with the Flight Recorder's names. Other collectors count pauses of a longer
// cycle (share/gc/*/: CollectorCounters).
var collectorNames = map[string]string{
	"Copy":                               "DefNew", // 8, 11
	"MSC":                                "SerialOld",
	"Serial young collection pauses":     "DefNew",
	"Serial full collection pauses":      "SerialOld",
	"PCopy":                              "ParNew",
	"PSScavenge":                         "ParallelScavenge", // 8, 11
	"PSMarkSweep":                        "PSMarkSweep",
	"PSParallelCompact":                  "ParallelOld",
	"Parallel young collection pauses":   "ParallelScavenge",
	"Parallel full collection pauses":    "ParallelOld",
	"G1 incremental collections":         "G1New", // 8, 11
	"G1 stop-the-world full collections": "G1Full",
	"G1 young collection pauses":         "G1New",
	"G1 full collection pauses":          "G1Full",
}

// young are the collectors that collect only the young generation.
var young = map[string]bool{"DefNew": true, "ParNew": true, "ParallelScavenge": true, "G1New": true}

// ran reports whether a collection has ended since the counters were last read. It reads only the
// counters that show it.
func (g *collections) ran(c *hsperfdata.Counters) bool {
	if !g.begun || !c.ReadSpan(g.span) {
		return true
	}
	for i := range g.of {
		k := &g.of[i]
		if count, _ := c.Number(k.invocations); count > k.count {
			return true
		}
	}
	return false
}

// collected reports collections since the previous read of the counters. They have just been read
// again, after the time before.
func (o *observer) collected(to runtimes.Observations, before uint64) {
	c, g := o.counters, &o.gc
	if !g.begun {
		g.begin(c, to)
	}
	after := to.Clock()
	var ran []collection
	for i := range g.of {
		k := &g.of[i]
		count, _ := c.Number(k.invocations)
		entry, _ := c.Number(k.entry)
		exit, _ := c.Number(k.exit)
		if count <= k.count || exit < entry || exit <= 0 {
			continue // nothing new, or one is running now
		}
		g.ids += uint64(count - k.count)
		k.count = count
		to.Hurry() // of several between two reads only the last is fully known
		entry, exit = ticksToNs(c, entry), ticksToNs(c, exit)
		g.clock.bound(int64(g.looked)-exit, int64(after)-exit)
		ran = append(ran, collection{name: k.name, entry: entry, exit: exit})
	}
	slices.SortFunc(ran, func(a, b collection) int { return cmp.Compare(a.exit, b.exit) })
	for i := range ran {
		k := &ran[i]
		begin := g.clock.zero() + k.entry - int64(to.Start())
		if begin < 0 {
			continue
		}
		// The VM's number and cause belong to the last run.
		k.begin, k.id, k.last = uint64(begin), g.ids-uint64(len(ran)-i), i == len(ran)-1
		tellCollection(to, c, k)
	}
	g.looked = before
}

// tellCollectors reports how often each collector ran, if that has changed.
func (o *observer) tellCollectors(to runtimes.Observations) {
	c := o.counters
	for i := range o.gc.of {
		k := &o.gc.of[i]
		if k.told == k.count {
			continue
		}
		k.told = k.count
		time, _ := c.Number(k.time)
		to.Seen(profile.CollectorStatistics, profile.Text(k.name), profile.Number(uint64(k.count)), profile.Number(uint64(ticksToNs(c, time))))
	}
}

// collection is one run of a collector.
type collection struct {
	name        string // the VM's
	entry, exit int64  // ns by the VM's clock
	begin, id   uint64
	last        bool
}

// noCause is the VM's last cause while it collects.
const noCause = "No GC"

// tellCollection reports one run of a collector.
func tellCollection(to runtimes.Observations, c *hsperfdata.Counters, k *collection) {
	id, ns := profile.Number(k.id), uint64(k.exit-k.entry)
	o := profile.Observation{Kind: profile.GCPhasePause, Time: k.begin, Duration: ns, Values: []profile.Value{id, profile.Text(k.name)}}
	usual, ok := collectorNames[k.name]
	if !ok {
		to.Observe(o)
		return
	}
	cause, pause := "", profile.Number(ns)
	if k.last {
		cause = strings.TrimPrefix(c.Text("sun.gc.lastCause"), noCause)
	}
	o.Kind, o.Values = profile.GarbageCollection, []profile.Value{id, profile.Text(usual), profile.Text(cause), pause, pause}
	to.Observe(o)
	o.Kind, o.Values = profile.GCPhasePause, []profile.Value{id, profile.Text("GC Pause")}
	to.Observe(o)
	o.Kind, o.Values = profile.OldGarbageCollection, []profile.Value{id}
	if young[usual] {
		o.Kind = profile.YoungGarbageCollection
	}
	to.Observe(o)
	if used, _, ok := heap(c, false); ok && k.last {
		to.Observe(profile.Observation{Kind: profile.GCHeapSummary, Time: k.begin + ns, Values: []profile.Value{
			id, profile.Text("After GC"), profile.Number(used),
		}})
	}
}

// begin finds the collectors. Collections that ran before now do not belong to the recording.
func (g *collections) begin(c *hsperfdata.Counters, to runtimes.Observations) {
	g.begun = true
	for i := range maxCollectors {
		prefix := fmt.Sprintf("sun.gc.collector.%d.", i)
		name := c.Text(prefix + "name")
		if _, ok := c.Number(prefix + "invocations"); !ok || name == "" {
			continue
		}
		g.of = append(g.of, collectorSeen{
			name: name, invocations: prefix + "invocations", time: prefix + "time", entry: prefix + "lastEntryTime", exit: prefix + "lastExitTime",
		})
	}
	for i := range g.of {
		k := &g.of[i]
		k.count, _ = c.Number(k.invocations)
		if entry, _ := c.Number(k.entry); k.count > 0 {
			if exit, _ := c.Number(k.exit); exit < entry {
				k.count-- // one is running
			}
		}
		g.ids += uint64(max(k.count, 0))
	}
	var names []string
	for i := range g.of {
		names = append(names, g.of[i].invocations)
	}
	g.span = c.SpanOf(names...)
	g.clock.begin(c, to)
}

// ticksToNs converts a duration by the VM's clock to ns.
func ticksToNs(c *hsperfdata.Counters, ticks int64) int64 {
	f, ok := c.Number("sun.os.hrt.frequency")
	if !ok || f <= 0 || f == 1e9 {
		return ticks
	}
	return int64(float64(ticks) * (1e9 / float64(f)))
}

// vmClock is when a VM's clock was 0, in monotonic ns: when the VM began.
type vmClock struct {
	guess    int64
	low, top int64 // certain bounds
}

// begin estimates it from when the VM began, which the VM records in ms of wall-clock time: that is
// as accurate as the wall clock has been since.
func (k *vmClock) begin(c *hsperfdata.Counters, to runtimes.Observations) {
	k.low, k.top = math.MinInt64, math.MaxInt64
	ms, _ := c.Number("sun.rt.createVmBeginTime")
	k.guess = ms*1e6 - time.Now().UnixNano() + int64(to.Clock())
}

// bound narrows the bounds: a collection that was not there at one time, and was there at another,
// ended between them.
func (k *vmClock) bound(low, top int64) {
	low, top = max(low, k.low), min(top, k.top)
	if low <= top {
		k.low, k.top = low, top
	}
}

func (k *vmClock) zero() int64 { return min(max(k.guess, k.low), k.top) }

// Maximum number of generations and spaces of a heap, for all collectors.
const (
	maxGenerations = 3
	maxHeapSpaces  = 6
)

// heap adds up the spaces of a VM's heap. Without eden it is what survived, because a collection
// empties eden and the program fills it again at once.
func heap(c *hsperfdata.Counters, eden bool) (used, committed uint64, ok bool) {
	for i := range maxGenerations {
		prefix := fmt.Sprintf("sun.gc.generation.%d.", i)
		if n, have := c.Number(prefix + "capacity"); have && n > 0 {
			committed += uint64(n)
		}
		for j := range maxHeapSpaces {
			space := fmt.Sprintf("%sspace.%d.", prefix, j)
			n, have := c.Number(space + "used")
			if have && n >= 0 {
				ok = true
				if eden || c.Text(space+"name") != "eden" {
					used += uint64(n)
				}
			}
		}
	}
	return used, committed, ok
}
