package java

import (
	"math"
	"slices"
	"strconv"

	"github.com/candid-profiler/candid/internal/hotspot"
	"github.com/candid-profiler/candid/internal/hotspot/hsperfdata"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/redact"
	"github.com/candid-profiler/candid/internal/runtimes"
)

// propertyPrefixes are the counters that hold properties.
var propertyPrefixes = []string{"java.property.", "sun.property."}

// describe reports what a VM is and how it is configured, as far as that can be seen from outside
// and may be in a file that people send to others: no environment, and no value whose name is that
// of a secret. Without counters it reports only the VM's flags.
func describe(to runtimes.Observations, vm *hotspot.VM, c *hsperfdata.Counters) {
	if c != nil {
		began, _ := c.Number("sun.rt.createVmBeginTime")
		to.Seen(profile.JVMInformation,
			profile.Text(c.Text("java.property.java.vm.name")), profile.Text(c.Text("sun.rt.internalVersion")),
			profile.Text(redact.Line(c.Text("java.rt.vmArgs"))), profile.Text(redact.Line(c.Text("java.rt.vmFlags"))),
			profile.Text(redact.Line(c.Text("sun.rt.javaCommand"))), profile.Number(uint64(max(began, 0))), profile.Number(uint64(to.PID())))
		var properties [][2]string
		for _, prefix := range propertyPrefixes {
			c.Each(prefix, func(name, text string) { properties = append(properties, [2]string{name, redact.Value(name, text)}) })
		}
		slices.SortFunc(properties, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
		for _, kv := range properties {
			to.Seen(profile.InitialSystemProperty, profile.Text(kv[0]), profile.Text(kv[1]))
		}
	}
	for _, f := range vm.SetFlags() {
		tellFlag(to, f)
	}
	flag := func(name string) profile.Value { return flagValue(vm, name) }
	youngOne, old := collectorsOf(vm)
	if old != "" {
		to.Seen(profile.GCConfiguration, profile.Text(youngOne), profile.Text(old), flag("ParallelGCThreads"), flag("ConcGCThreads"),
			flag("UseDynamicNumberOfGCThreads"), flag("ExplicitGCInvokesConcurrent"), flag("DisableExplicitGC"), pauseTarget(vm), flag("GCTimeRatio"))
	}
	to.Seen(profile.GCHeapConfiguration, flag("MinHeapSize"), flag("MaxHeapSize"), flag("InitialHeapSize"), flag("UseCompressedOops"), profile.Text(vm.CompressedOopsMode()), flag("ObjectAlignmentInBytes"))
	to.Seen(profile.CompilerConfiguration, flag("CICompilerCount"), flag("TieredCompilation"), flag("UseDynamicNumberOfCompilerThreads"))
}

// tellFlag reports one flag.
func tellFlag(to runtimes.Observations, f vmstructs.SetFlag) {
	kind, value := uint16(profile.StringFlag), profile.Text(redact.Value(f.Name, f.Value))
	switch f.Kind {
	case "bool":
		kind, value = profile.BooleanFlag, profile.Flag(f.Value == "true")
	case "int", "intx":
		n, _ := strconv.ParseInt(f.Value, 10, 64)
		kind, value = profile.LongFlag, profile.Number(uint64(n))
	case "uint", "uintx", "uint64_t", "size_t":
		n, _ := strconv.ParseUint(f.Value, 10, 64)
		kind, value = profile.UnsignedLongFlag, profile.Number(n)
	case "double":
		n, _ := strconv.ParseFloat(f.Value, 64)
		kind, value = profile.DoubleFlag, profile.Share(n)
	}
	switch f.Kind {
	case "int":
		kind = profile.IntFlag
	case "uint":
		kind = profile.UnsignedIntFlag
	}
	to.Seen(kind, profile.Text(f.Name), value, profile.Text(f.Origin))
}

// flagValue returns a flag's value; the VM may not have the flag.
func flagValue(vm *hotspot.VM, name string) profile.Value {
	text, ok := vm.Flag(name)
	if text == "true" || text == "false" {
		return profile.Flag(text == "true")
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if !ok || err != nil {
		return profile.Number(profile.UnknownNumber)
	}
	return profile.Number(n)
}

// pauseTarget is the pause time that a collector tries not to exceed, in ms. Collectors that do not
// try have a meaningless number there.
func pauseTarget(vm *hotspot.VM) profile.Value {
	v := flagValue(vm, "MaxGCPauseMillis")
	if v.Number > math.MaxInt32 {
		v.Number = profile.UnknownNumber
	}
	return v
}

// collectorsOf returns the collectors of a VM in the Flight Recorder's words
// (share/gc/shared/gcConfiguration.cpp).
func collectorsOf(vm *hotspot.VM) (young, old string) {
	switch vm.GC() {
	case "G1":
		return "G1New", "G1Old"
	case "Parallel":
		return "ParallelScavenge", "ParallelOld"
	case "Serial":
		return "DefNew", "SerialOld"
	case "CMS":
		return "ParNew", "ConcurrentMarkSweep"
	case "ZGC":
		if v, ok := vm.Flag("ZGenerational"); ok && v == "true" || !ok && vm.Major >= 24 {
			return "ZGC Minor", "ZGC Major"
		}
		return "N/A", "Z"
	case "Shenandoah":
		return "N/A", "Shenandoah"
	}
	return "", ""
}
