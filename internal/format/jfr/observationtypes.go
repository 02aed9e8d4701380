package jfr

import "github.com/candid-profiler/candid/internal/profile"

// observationDef is how files call the observations of a kind: by the name of the JDK's event (its
// metadata.xml), or one that begins with candid if the JDK has none that fits.
type observationDef struct {
	name   string
	fields []observationField // as many as the kind has values, in their order
}

type observationField struct{ name, label string }

// observationDefs are all kinds. Fields of the JDK's events of the same name that are missing here
// cannot be seen from outside. peakTimeSpent cannot be seen either, but without it the JDK's view
// of compilations shows nothing at all.
var observationDefs = [len(profile.ObservationKinds)]observationDef{
	profile.OSInformation: {"jdk.OSInformation", []observationField{{"osVersion", "OS Version"}}},
	profile.CPUInformation: {"jdk.CPUInformation", []observationField{
		{"cpu", "Type"}, {"description", "Description"}, {"sockets", "Sockets"}, {"cores", "Cores"},
		{"hwThreads", "Hardware Threads"},
	}},
	profile.VirtualizationInformation: {"jdk.VirtualizationInformation", []observationField{{"name", "Name"}}},
	profile.PhysicalMemory:            {"jdk.PhysicalMemory", []observationField{{"totalSize", "Total Size"}, {"usedSize", "Used Size"}}},
	profile.CPULoad:                   {"jdk.CPULoad", []observationField{{"jvmUser", "JVM User"}, {"jvmSystem", "JVM System"}, {"machineTotal", "Machine Total"}}},
	profile.ThreadCPULoad:             {"jdk.ThreadCPULoad", []observationField{{"eventThread", "Event Thread"}, {"user", "User Mode CPU Load"}, {"system", "System Mode CPU Load"}}},
	profile.ResidentSetSize:           {"jdk.ResidentSetSize", []observationField{{"size", "Resident Set Size"}, {"peak", "Resident Set Size Peak Value"}}},
	profile.JVMInformation: {"jdk.JVMInformation", []observationField{
		{"jvmName", "JVM Name"}, {"jvmVersion", "JVM Version"}, {"jvmArguments", "JVM Command Line Arguments"}, {"jvmFlags", "JVM Settings File Arguments"},
		{"javaArguments", "Java Application Arguments"}, {"jvmStartTime", "JVM Start Time"}, {"pid", "Process Identifier"},
	}},
	profile.InitialSystemProperty: {"jdk.InitialSystemProperty", []observationField{{"key", "Key"}, {"value", "Value"}}},
	profile.BooleanFlag:           {"jdk.BooleanFlag", flagFields},
	profile.LongFlag:              {"jdk.LongFlag", flagFields},
	profile.UnsignedLongFlag:      {"jdk.UnsignedLongFlag", flagFields},
	profile.IntFlag:               {"jdk.IntFlag", flagFields},
	profile.UnsignedIntFlag:       {"jdk.UnsignedIntFlag", flagFields},
	profile.DoubleFlag:            {"jdk.DoubleFlag", flagFields},
	profile.StringFlag:            {"jdk.StringFlag", flagFields},
	profile.CompilerConfiguration: {"jdk.CompilerConfiguration", []observationField{
		{"threadCount", "Thread Count"}, {"tieredCompilation", "Tiered Compilation"}, {"dynamicCompilerThreadCount", "Dynamic Compiler Thread Count"},
	}},
	profile.GCConfiguration: {"jdk.GCConfiguration", []observationField{
		{"youngCollector", "Young Garbage Collector"}, {"oldCollector", "Old Garbage Collector"}, {"parallelGCThreads", "Parallel GC Threads"}, {"concurrentGCThreads", "Concurrent GC Threads"},
		{"usesDynamicGCThreads", "Uses Dynamic GC Threads"}, {"isExplicitGCConcurrent", "Concurrent Explicit GC"}, {"isExplicitGCDisabled", "Disabled Explicit GC"}, {"pauseTarget", "Pause Target"},
		{"gcTimeRatio", "GC Time Ratio"},
	}},
	profile.GCHeapConfiguration: {"jdk.GCHeapConfiguration", []observationField{
		{"minSize", "Minimum Heap Size"}, {"maxSize", "Maximum Heap Size"}, {"initialSize", "Initial Heap Size"}, {"usesCompressedOops", "If Compressed Oops Are Used"},
		{"compressedOopsMode", "Compressed Oops Mode"}, {"objectAlignment", "Object Alignment"},
	}},
	profile.GarbageCollection: {"jdk.GarbageCollection", []observationField{
		{"gcId", "GC Identifier"}, {"name", "Name"}, {"cause", "Cause"}, {"sumOfPauses", "Sum of Pauses"},
		{"longestPause", "Longest Pause"},
	}},
	profile.YoungGarbageCollection: {"jdk.YoungGarbageCollection", []observationField{{"gcId", "GC Identifier"}}},
	profile.OldGarbageCollection:   {"jdk.OldGarbageCollection", []observationField{{"gcId", "GC Identifier"}}},
	profile.GCPhasePause:           {"jdk.GCPhasePause", []observationField{{"gcId", "GC Identifier"}, {"name", "Name"}}},
	profile.GCHeapSummary:          {"jdk.GCHeapSummary", []observationField{{"gcId", "GC Identifier"}, {"when", "When"}, {"heapUsed", "Heap Used"}}},
	profile.CollectorStatistics: {"candid.CollectorStatistics", []observationField{
		{"name", "Name that the VM has for it"}, {"count", "Collections or Pauses since the VM began"}, {"time", "Time of All"},
	}},
	profile.HeapStatistics: {"candid.HeapStatistics", []observationField{
		{"used", "Used as the VM last counted"}, {"committed", "Committed"}, {"metaspaceUsed", "Metaspace Used"}, {"metaspaceCommitted", "Metaspace Committed"},
	}},
	profile.SafepointStatistics: {"candid.SafepointStatistics", []observationField{
		{"count", "Safepoints since the VM began"}, {"time", "Time of All"}, {"timeToSafepoint", "Of that until All Threads Stood"},
	}},
	profile.ClassLoadingStatistics: {"jdk.ClassLoadingStatistics", []observationField{
		{"loadedClassCount", "Loaded Class Count"}, {"unloadedClassCount", "Unloaded Class Count"},
	}},
	profile.JavaThreadStatistics: {"jdk.JavaThreadStatistics", []observationField{
		{"activeCount", "Active Threads"}, {"daemonCount", "Daemon Threads"}, {"accumulatedCount", "Accumulated Threads"}, {"peakCount", "Peak Threads"},
	}},
	profile.CompilerStatistics: {"jdk.CompilerStatistics", []observationField{
		{"compileCount", "Compiled Methods"}, {"bailoutCount", "Bailouts"}, {"invalidatedCount", "Invalidated Compilations"}, {"osrCompileCount", "OSR Compilations"},
		{"standardCompileCount", "Standard Compilations"}, {"osrBytesCompiled", "OSR Bytes Compiled"}, {"standardBytesCompiled", "Standard Bytes Compiled"}, {"nmethodsSize", "Compilation Resulting Size"},
		{"nmethodCodeSize", "Compilation Resulting Code Size"}, {"peakTimeSpent", "Peak Time"}, {"totalTimeSpent", "Total Time"},
	}},
	profile.NativeLibrary: {"jdk.NativeLibrary", []observationField{{"name", "Name"}, {"baseAddress", "Base Address"}, {"topAddress", "Top Address"}}},
	// As for the JDK, this is the traffic of everything on the interface, not of one process.
	profile.NetworkUtilization: {"jdk.NetworkUtilization", []observationField{
		{"networkInterface", "Network Interface"}, {"readRate", "Read Rate in bits a second"}, {"writeRate", "Write Rate in bits a second"},
	}},
	profile.NativeModule: {"candid.NativeModule", []observationField{{"name", "Name in Frames"}, {"path", "Path"}, {"buildId", "Build Id"}}},
	profile.NativeBranch: {"candid.NativeBranch", []observationField{
		{"fromModule", "Module of the Branch"}, {"from", "Address of the Branch in its File"}, {"toModule", "Module of the Target"}, {"to", "Address of the Target in its File"},
		{"end", "Last Instruction before the next Branch taken"}, {"count", "Count"}, {"late", "Of those after Reads that followed the Sample"}, {"last", "Of those at the End of a Trace"},
	}},
	profile.GenerationSummary: {"candid.GenerationSummary", []observationField{
		{"gcId", "GC Identifier"}, {"name", "Name"}, {"sizeBefore", "Size before the Collection"}, {"freeBefore", "Free between Objects before the Collection"},
		{"sizeAfter", "Size after the Collection"}, {"freeAfter", "Free between Objects after the Collection"},
	}},
}

var flagFields = []observationField{{"name", "Name"}, {"value", "Value"}, {"origin", "Origin"}}
