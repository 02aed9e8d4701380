package java

import (
	"errors"
	"fmt"

	"github.com/candid-profiler/candid/internal/hotspot/hsperfdata"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/runtimes"
)

// observer is the last known state of a VM besides the samples.
type observer struct {
	counters *hsperfdata.Counters // nil: not found yet, or there are none
	asked    int                  // how often they were looked for
	missing  bool                 // it is known that there are none
	told     bool                 // the VM was described
	gc       collections
}

// counterPatience is how often a VM that has no counters yet is asked for them.
const counterPatience = 100

// Observe implements runtimes.Observed: it reads the VM's counters, those of collections on each
// call.
func (i *instance) Observe(all bool, to runtimes.Observations) {
	o := &i.observer
	if o.counters == nil {
		if o.missing && !o.told {
			o.told = true
			describe(to, i.VM, nil)
		}
		if o.asked >= counterPatience {
			return
		}
		o.asked++
		c, err := hsperfdata.Open(&i.VM.VM)
		if err != nil {
			if !errors.Is(err, vmstructs.ErrNotReady) {
				o.asked, o.missing, o.told = counterPatience, true, true
				to.Note(fmt.Sprintf("heap, collections, classes and compilations are not told of: %v", err))
				describe(to, i.VM, nil)
			}
			return
		}
		// The VM publishes its properties when it is nearly ready, and this counter last.
		if n, ok := c.Number("sun.rt.createVmEndTime"); !ok || n == 0 {
			return
		}
		o.counters = c
	}
	if !o.told {
		o.told, all = true, true
		describe(to, i.VM, o.counters)
	}
	before := to.Clock()
	if !all && !o.gc.ran(o.counters) {
		o.gc.looked = before
		return
	}
	if !o.counters.Read() {
		return
	}
	o.collected(to, before)
	if all {
		o.tellCollectors(to)
		tellCounts(to, o.counters)
	}
}

// Redescribe implements runtimes.Observed.
func (i *instance) Redescribe() { i.observer.told = false }

// numbers returns counters as values.
func numbers(c *hsperfdata.Counters, names ...string) []profile.Value {
	out := make([]profile.Value, len(names))
	for i, name := range names {
		out[i] = profile.Number(profile.UnknownNumber)
		if n, ok := c.Number(name); ok && n >= 0 {
			out[i] = profile.Number(uint64(n))
		}
	}
	return out
}

// tellCounts reports what a VM counts.
func tellCounts(to runtimes.Observations, c *hsperfdata.Counters) {
	sum := func(values ...profile.Value) profile.Value {
		n := uint64(0)
		for _, v := range values {
			if v.Number == profile.UnknownNumber {
				return v
			}
			n += v.Number
		}
		return profile.Number(n)
	}
	to.Seen(profile.ClassLoadingStatistics,
		sum(numbers(c, "java.cls.loadedClasses", "java.cls.sharedLoadedClasses")...), sum(numbers(c, "java.cls.unloadedClasses", "java.cls.sharedUnloadedClasses")...))
	to.Seen(profile.JavaThreadStatistics, numbers(c, "java.threads.live", "java.threads.daemon", "java.threads.started", "java.threads.livePeak")...)
	compiler := numbers(c, "sun.ci.totalCompiles", "sun.ci.totalBailouts", "sun.ci.totalInvalidates", "sun.ci.osrCompiles", "sun.ci.standardCompiles",
		"sun.ci.osrBytes", "sun.ci.standardBytes", "sun.ci.nmethodSize", "sun.ci.nmethodCodeSize", "", "java.ci.totalTime")
	if n := &compiler[len(compiler)-1]; n.Number != profile.UnknownNumber {
		n.Number = uint64(ticksToNs(c, int64(n.Number))) / 1e6
	}
	to.Seen(profile.CompilerStatistics, compiler...)
	safepoints := numbers(c, "sun.rt.safepoints", "sun.rt.safepointTime", "sun.rt.safepointSyncTime")
	if safepoints[0].Number != profile.UnknownNumber {
		for i := range safepoints[1:] {
			if v := &safepoints[i+1]; v.Number != profile.UnknownNumber {
				v.Number = uint64(ticksToNs(c, int64(v.Number)))
			}
		}
		to.Seen(profile.SafepointStatistics, safepoints...)
	}
	used, committed, ok := heap(c, true)
	if ok {
		to.Seen(profile.HeapStatistics, append([]profile.Value{profile.Number(used), profile.Number(committed)},
			numbers(c, "sun.gc.metaspace.used", "sun.gc.metaspace.capacity")...)...)
	}
}
