package profile

import "math"

// Observation is something that was seen beside the samples: what the machine and a runtime are,
// how much memory a process has at a time, a garbage collection.
type Observation struct {
	Kind    uint16 // index into ObservationKinds
	Process int32  // index into Processes; -1: the machine, or the process is not known
	Time    uint64 // ns since Meta.Start
	// Duration is in ns; 0 for instants.
	Duration uint64
	Values   []Value // one for each field of the kind
}

// Value is a number or a text.
type Value struct {
	Number uint64 // for a ValueShare or a ValueFloat the bits of a float64
	Text   string
}

// UnknownNumber is the value of a number that was not available; readers of the Flight Recorder's
// files show it as none.
const UnknownNumber = 1 << 63

// Number, Share, Flag and Text return values; Share takes any number.
func Number(n uint64) Value     { return Value{Number: n} }
func Share(share float64) Value { return Value{Number: math.Float64bits(share)} }
func Text(s string) Value       { return Value{Text: s} }
func Flag(is bool) Value {
	if is {
		return Value{Number: 1}
	}
	return Value{}
}

// Share returns the number of a ValueShare or a ValueFloat.
func (v Value) Share() float64 { return math.Float64frombits(v.Number) }

// ValueType is how a value is interpreted.
type ValueType uint8

// The types of values.
const (
	ValueCount   ValueType = iota
	ValueBytes             // an amount of memory
	ValueNanos             // a length of time in ns
	ValueMillis            // a length of time in ms
	ValueEpoch             // a time, ms since 1970
	ValueSigned            // a signed number, stored as a uint64
	ValueAddress           // an address in a process's memory
	ValueThread            // index into Threads
	ValueShare             // 0 to 1
	ValueFloat             // any number, as the bits of a float64
	ValueFlag              // 0 or 1
	ValueText
)

// ObservationField describes one value of a kind.
type ObservationField struct {
	Name, Label string
	Type        ValueType
}

// ObservationKind is a kind of observations. Its name is that of the JDK's Flight Recorder, or
// begins with candid if the JDK has none that fits.
type ObservationKind struct {
	Name, Label string
	Lasts       bool // it has a Duration
	Fields      []ObservationField
}

// The kinds: indices into ObservationKinds.
const (
	OSInformation = iota
	CPUInformation
	VirtualizationInformation
	PhysicalMemory
	CPULoad
	ThreadCPULoad
	ResidentSetSize
	JVMInformation
	InitialSystemProperty
	BooleanFlag
	LongFlag
	UnsignedLongFlag
	IntFlag
	UnsignedIntFlag
	DoubleFlag
	StringFlag
	CompilerConfiguration
	GCConfiguration
	GCHeapConfiguration
	GarbageCollection
	YoungGarbageCollection
	OldGarbageCollection
	GCPhasePause
	GCHeapSummary
	CollectorStatistics
	HeapStatistics
	SafepointStatistics
	ClassLoadingStatistics
	JavaThreadStatistics
	CompilerStatistics
	NativeLibrary
	NetworkUtilization

	numObservationKinds
)

// ObservationKinds are all kinds. Fields of the JDK's events of the same name that are missing here
// cannot be seen from outside. peakTimeSpent cannot be seen either, but without it the JDK's view
// of compilations shows nothing at all.
var ObservationKinds = [numObservationKinds]ObservationKind{
	OSInformation:             {Name: "jdk.OSInformation", Label: "OS Information", Fields: []ObservationField{{"osVersion", "OS Version", ValueText}}},
	CPUInformation:            {Name: "jdk.CPUInformation", Label: "CPU Information", Fields: []ObservationField{{"cpu", "Type", ValueText}, {"description", "Description", ValueText}, {"sockets", "Sockets", ValueCount}, {"cores", "Cores", ValueCount}, {"hwThreads", "Hardware Threads", ValueCount}}},
	VirtualizationInformation: {Name: "jdk.VirtualizationInformation", Label: "Virtualization Information", Fields: []ObservationField{{"name", "Name", ValueText}}},
	PhysicalMemory:            {Name: "jdk.PhysicalMemory", Label: "Physical Memory", Fields: []ObservationField{{"totalSize", "Total Size", ValueBytes}, {"usedSize", "Used Size", ValueBytes}}},
	CPULoad: {Name: "jdk.CPULoad", Label: "CPU Load", Fields: []ObservationField{
		{"jvmUser", "JVM User", ValueShare}, {"jvmSystem", "JVM System", ValueShare}, {"machineTotal", "Machine Total", ValueShare},
	}},
	ThreadCPULoad: {Name: "jdk.ThreadCPULoad", Label: "Thread CPU Load", Fields: []ObservationField{
		{"eventThread", "Event Thread", ValueThread}, {"user", "User Mode CPU Load", ValueShare}, {"system", "System Mode CPU Load", ValueShare},
	}},
	ResidentSetSize: {Name: "jdk.ResidentSetSize", Label: "Resident Set Size", Fields: []ObservationField{{"size", "Resident Set Size", ValueBytes}, {"peak", "Resident Set Size Peak Value", ValueBytes}}},
	JVMInformation: {Name: "jdk.JVMInformation", Label: "JVM Information", Fields: []ObservationField{
		{"jvmName", "JVM Name", ValueText}, {"jvmVersion", "JVM Version", ValueText}, {"jvmArguments", "JVM Command Line Arguments", ValueText},
		{"jvmFlags", "JVM Settings File Arguments", ValueText}, {"javaArguments", "Java Application Arguments", ValueText},
		{"jvmStartTime", "JVM Start Time", ValueEpoch}, {"pid", "Process Identifier", ValueCount},
	}},
	InitialSystemProperty: {Name: "jdk.InitialSystemProperty", Label: "Initial System Property", Fields: []ObservationField{{"key", "Key", ValueText}, {"value", "Value", ValueText}}},
	BooleanFlag:           {Name: "jdk.BooleanFlag", Label: "Boolean Flag", Fields: flagFields(ValueFlag)},
	LongFlag:              {Name: "jdk.LongFlag", Label: "Long Flag", Fields: flagFields(ValueSigned)},
	UnsignedLongFlag:      {Name: "jdk.UnsignedLongFlag", Label: "Unsigned Long Flag", Fields: flagFields(ValueCount)},
	IntFlag:               {Name: "jdk.IntFlag", Label: "Int Flag", Fields: flagFields(ValueSigned)},
	UnsignedIntFlag:       {Name: "jdk.UnsignedIntFlag", Label: "Unsigned Int Flag", Fields: flagFields(ValueCount)},
	DoubleFlag:            {Name: "jdk.DoubleFlag", Label: "Double Flag", Fields: flagFields(ValueFloat)},
	StringFlag:            {Name: "jdk.StringFlag", Label: "String Flag", Fields: flagFields(ValueText)},
	CompilerConfiguration: {Name: "jdk.CompilerConfiguration", Label: "Compiler Configuration", Fields: []ObservationField{
		{"threadCount", "Thread Count", ValueCount}, {"tieredCompilation", "Tiered Compilation", ValueFlag}, {"dynamicCompilerThreadCount", "Dynamic Compiler Thread Count", ValueFlag},
	}},
	GCConfiguration: {Name: "jdk.GCConfiguration", Label: "GC Configuration", Fields: []ObservationField{
		{"youngCollector", "Young Garbage Collector", ValueText}, {"oldCollector", "Old Garbage Collector", ValueText},
		{"parallelGCThreads", "Parallel GC Threads", ValueCount}, {"concurrentGCThreads", "Concurrent GC Threads", ValueCount},
		{"usesDynamicGCThreads", "Uses Dynamic GC Threads", ValueFlag}, {"isExplicitGCConcurrent", "Concurrent Explicit GC", ValueFlag},
		{"isExplicitGCDisabled", "Disabled Explicit GC", ValueFlag}, {"pauseTarget", "Pause Target", ValueMillis}, {"gcTimeRatio", "GC Time Ratio", ValueCount},
	}},
	GCHeapConfiguration: {Name: "jdk.GCHeapConfiguration", Label: "GC Heap Configuration", Fields: []ObservationField{
		{"minSize", "Minimum Heap Size", ValueBytes}, {"maxSize", "Maximum Heap Size", ValueBytes}, {"initialSize", "Initial Heap Size", ValueBytes},
		{"usesCompressedOops", "If Compressed Oops Are Used", ValueFlag}, {"compressedOopsMode", "Compressed Oops Mode", ValueText}, {"objectAlignment", "Object Alignment", ValueBytes},
	}},
	GarbageCollection: {Name: "jdk.GarbageCollection", Label: "Garbage Collection", Lasts: true, Fields: []ObservationField{
		{"gcId", "GC Identifier", ValueCount}, {"name", "Name", ValueText}, {"cause", "Cause", ValueText},
		{"sumOfPauses", "Sum of Pauses", ValueNanos}, {"longestPause", "Longest Pause", ValueNanos},
	}},
	YoungGarbageCollection: {Name: "jdk.YoungGarbageCollection", Label: "Young Garbage Collection", Lasts: true, Fields: []ObservationField{{"gcId", "GC Identifier", ValueCount}}},
	OldGarbageCollection:   {Name: "jdk.OldGarbageCollection", Label: "Old Garbage Collection", Lasts: true, Fields: []ObservationField{{"gcId", "GC Identifier", ValueCount}}},
	GCPhasePause: {Name: "jdk.GCPhasePause", Label: "GC Phase Pause", Lasts: true, Fields: []ObservationField{
		{"gcId", "GC Identifier", ValueCount}, {"name", "Name", ValueText},
	}},
	GCHeapSummary: {Name: "jdk.GCHeapSummary", Label: "Heap Summary", Fields: []ObservationField{
		{"gcId", "GC Identifier", ValueCount}, {"when", "When", ValueText}, {"heapUsed", "Heap Used", ValueBytes},
	}},
	CollectorStatistics: {Name: "candid.CollectorStatistics", Label: "Collector Statistics", Fields: []ObservationField{
		{"name", "Name that the VM has for it", ValueText}, {"count", "Collections or Pauses since the VM began", ValueCount}, {"time", "Time of All", ValueNanos},
	}},
	HeapStatistics: {Name: "candid.HeapStatistics", Label: "Heap Statistics", Fields: []ObservationField{
		{"used", "Used as the VM last counted", ValueBytes}, {"committed", "Committed", ValueBytes},
		{"metaspaceUsed", "Metaspace Used", ValueBytes}, {"metaspaceCommitted", "Metaspace Committed", ValueBytes},
	}},
	SafepointStatistics: {Name: "candid.SafepointStatistics", Label: "Safepoint Statistics", Fields: []ObservationField{
		{"count", "Safepoints since the VM began", ValueCount}, {"time", "Time of All", ValueNanos}, {"timeToSafepoint", "Of that until All Threads Stood", ValueNanos},
	}},
	ClassLoadingStatistics: {Name: "jdk.ClassLoadingStatistics", Label: "Class Loading Statistics", Fields: []ObservationField{
		{"loadedClassCount", "Loaded Class Count", ValueCount}, {"unloadedClassCount", "Unloaded Class Count", ValueCount},
	}},
	JavaThreadStatistics: {Name: "jdk.JavaThreadStatistics", Label: "Java Thread Statistics", Fields: []ObservationField{
		{"activeCount", "Active Threads", ValueCount}, {"daemonCount", "Daemon Threads", ValueCount}, {"accumulatedCount", "Accumulated Threads", ValueCount}, {"peakCount", "Peak Threads", ValueCount},
	}},
	CompilerStatistics: {Name: "jdk.CompilerStatistics", Label: "Compiler Statistics", Fields: []ObservationField{
		{"compileCount", "Compiled Methods", ValueCount}, {"bailoutCount", "Bailouts", ValueCount}, {"invalidatedCount", "Invalidated Compilations", ValueCount},
		{"osrCompileCount", "OSR Compilations", ValueCount}, {"standardCompileCount", "Standard Compilations", ValueCount},
		{"osrBytesCompiled", "OSR Bytes Compiled", ValueBytes}, {"standardBytesCompiled", "Standard Bytes Compiled", ValueBytes},
		{"nmethodsSize", "Compilation Resulting Size", ValueBytes}, {"nmethodCodeSize", "Compilation Resulting Code Size", ValueBytes},
		{"peakTimeSpent", "Peak Time", ValueMillis}, {"totalTimeSpent", "Total Time", ValueMillis},
	}},
	NativeLibrary: {Name: "jdk.NativeLibrary", Label: "Native Library", Fields: []ObservationField{
		{"name", "Name", ValueText}, {"baseAddress", "Base Address", ValueAddress}, {"topAddress", "Top Address", ValueAddress},
	}},
	// As for the JDK, this is the traffic of everything on the interface, not of one process.
	NetworkUtilization: {Name: "jdk.NetworkUtilization", Label: "Network Utilization", Fields: []ObservationField{
		{"networkInterface", "Network Interface", ValueText}, {"readRate", "Read Rate in bits a second", ValueCount}, {"writeRate", "Write Rate in bits a second", ValueCount},
	}},
}

func flagFields(t ValueType) []ObservationField {
	return []ObservationField{{"name", "Name", ValueText}, {"value", "Value", t}, {"origin", "Origin", ValueText}}
}

// Observe appends an observation, which must fit its kind.
func (b *Builder) Observe(o Observation) { b.p.Observations = append(b.p.Observations, o) }

// Observations returns the observations since SumUp dropped others, and how many were dropped.
func (b *Builder) Observations() (list []Observation, gone int) { return b.p.Observations, b.gone }
