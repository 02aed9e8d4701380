package jfr

// The numbers of the types in files that candid writes. Readers find types by name; those of
// samples are small, because each sample contains its own.
const (
	typeBoolean = iota + 4
	typeChar
	typeFloat
	typeDouble
	typeByte
	typeShort
	typeInt
	typeLong
	typeString

	typeClass
	typeThread
	typeClassLoader
	typeFrameType
	typeThreadState
	typeStackTrace
	typeStackFrame
	typeMethod
	typePackage
	typeSymbol

	typeFunction
	typeFrame
	typeNodes
	typeStacks
	typeKind
	typeFrameKind
	typeProvenance
	typeState
	typeEnd
	typeSyscall

	typeExecutionSample
	typeWallClockSample
	typeSample
	typeRecording
	typeNote
	typeEvent
	typeProcess
	typeThreadInfo
	typeLosses
	typeCost
	typeActiveSetting

	typeLabel
	typeDescription
	typeCategory
	typeContentType
	typeTimestamp
	typeTimespan
	typeUnsigned
	typeMemoryAddress
	typeDataAmount
	typePercentage

	// typeObservation is the first of profile.ObservationKinds.
	typeObservation = 100
)

// Names of types that are looked up when a file is read.
const (
	nameString      = "java.lang.String"
	nameClass       = "java.lang.Class"
	nameThread      = "java.lang.Thread"
	nameFrameType   = "jdk.types.FrameType"
	nameThreadState = "jdk.types.ThreadState"
	nameStackTrace  = "jdk.types.StackTrace"
	nameStackFrame  = "jdk.types.StackFrame"
	nameMethod      = "jdk.types.Method"
	nameSymbol      = "jdk.types.Symbol"

	nameFunction   = "candid.types.Function"
	nameFrame      = "candid.types.Frame"
	nameNodes      = "candid.types.Nodes"
	nameStacks     = "candid.types.Stacks"
	nameKind       = "candid.types.SampleKind"
	nameFrameKind  = "candid.types.FrameKind"
	nameProvenance = "candid.types.Provenance"
	nameState      = "candid.types.State"
	nameEnd        = "candid.types.End"
	nameSyscall    = "candid.types.SystemCall"

	nameExecutionSample = "jdk.ExecutionSample"
	nameWallClockSample = "profiler.WallClockSample"
	nameSample          = "candid.Sample"
	nameRecording       = "candid.Recording"
	nameNote            = "candid.Note"
	nameEvent           = "candid.Event"
	nameProcess         = "candid.Process"
	nameThreadInfo      = "candid.Thread"
	nameLosses          = "candid.Losses"
	nameCost            = "candid.Cost"
	nameActiveSetting   = "jdk.ActiveSetting"
)

const (
	superEvent      = "jdk.jfr.Event"
	superAnnotation = "java.lang.annotation.Annotation"
)

// typeDef describes a type as the metadata of a file does.
type typeDef struct {
	id          int
	name        string
	super       string
	label       string
	description string
	category    []string
	simple      bool // of a single field, whose value stands for the type's
	contentType bool // an annotation that gives the meaning of a number
	fields      []fieldDef
}

type fieldDef struct {
	name  string
	typ   int
	label string
	flags fieldFlags
}

type fieldFlags uint16

const (
	constant fieldFlags = 1 << iota // the number of a constant
	array
	ticks    // a point in time
	timespan // a duration in ticks
	nanos    // a duration in ns
	epoch    // ms since 1970
	unsigned
	address
	dataSize // bytes
	millis   // a duration in ms
	share    // 0 to 1
)

// contentTypes are the annotations that fieldFlags stand for.
var contentTypes = []struct {
	flag  fieldFlags
	typ   int
	value string
}{
	{ticks, typeTimestamp, "TICKS"},
	{timespan, typeTimespan, "TICKS"},
	{nanos, typeTimespan, "NANOSECONDS"},
	{epoch, typeTimestamp, "MILLISECONDS_SINCE_EPOCH"},
	{unsigned, typeUnsigned, ""},
	{address, typeMemoryAddress, ""},
	{dataSize, typeDataAmount, "BYTES"},
	{millis, typeTimespan, "MILLISECONDS"},
	{share, typePercentage, ""},
}

var profiling = []string{"Java Virtual Machine", "Profiling"}

var candidEvents = []string{"candid"}

func startTime() fieldDef { return fieldDef{"startTime", typeLong, "Start Time", ticks} }

// own returns the fields of a sample: the usual ones, followed by those that only candid reads.
// Some readers stop at the last usual field and take what comes next for another event: it looks
// like one, with its length and a number that is not the type of an event.
func own(usual ...fieldDef) []fieldDef {
	return append(append([]fieldDef{
		startTime(),
		{"sampledThread", typeThread, "Thread", constant},
		{"stackTrace", typeStackTrace, "Stack Trace", constant},
		{"state", typeThreadState, "Thread State", constant},
	}, usual...),
		fieldDef{"length", typeInt, "Bytes From Here On", 0},
		fieldDef{"kind", typeKind, "Event, State and Certainty", constant},
		fieldDef{"weight", typeLong, "Weight in the Event's Unit", unsigned},
		fieldDef{"node", typeLong, "Stack in candid's Own Table, 0: what the Stack Trace Stands for", unsigned})
}

// typeDefs are the types of files that candid writes. The usual types have the fields that readers
// rely on, in the order in which some read them without checking.
var typeDefs = []typeDef{
	{id: typeBoolean, name: "boolean"},
	{id: typeChar, name: "char"},
	{id: typeFloat, name: "float"},
	{id: typeDouble, name: "double"},
	{id: typeByte, name: "byte"},
	{id: typeShort, name: "short"},
	{id: typeInt, name: "int"},
	{id: typeLong, name: "long"},
	{id: typeString, name: nameString},

	{id: typeClass, name: nameClass, label: "Java Class", fields: []fieldDef{
		{"classLoader", typeClassLoader, "Class Loader", constant},
		{"name", typeSymbol, "Name", constant},
		{"package", typePackage, "Package", constant},
		{"modifiers", typeInt, "Access Modifiers", 0},
	}},
	{id: typeThread, name: nameThread, label: "Thread", fields: []fieldDef{
		{"osName", typeString, "OS Thread Name", 0},
		{"osThreadId", typeLong, "OS Thread Id", 0},
		{"javaName", typeString, "Java Thread Name", 0},
		{"javaThreadId", typeLong, "Java Thread Id", 0},
		{"process", typeLong, "Process Id", 0},
		{"number", typeLong, "Number in candid's Own Table", 0},
	}},
	{id: typeClassLoader, name: "jdk.types.ClassLoader", label: "Java Class Loader", fields: []fieldDef{
		{"type", typeClass, "Type", constant},
		{"name", typeSymbol, "Name", constant},
	}},
	{id: typeFrameType, name: nameFrameType, label: "Frame type", simple: true, fields: []fieldDef{{"description", typeString, "Description", 0}}},
	{id: typeThreadState, name: nameThreadState, label: "Java Thread State", simple: true, fields: []fieldDef{{"name", typeString, "Name", 0}}},
	{id: typeStackTrace, name: nameStackTrace, label: "Stacktrace", fields: []fieldDef{
		{"truncated", typeBoolean, "Truncated", 0},
		{"frames", typeStackFrame, "Stack Frames", array},
	}},
	{id: typeStackFrame, name: nameStackFrame, fields: []fieldDef{
		{"method", typeMethod, "Java Method", constant},
		{"lineNumber", typeInt, "Line Number", 0},
		{"bytecodeIndex", typeInt, "Bytecode Index", 0},
		{"type", typeFrameType, "Frame Type", constant},
	}},
	{id: typeMethod, name: nameMethod, label: "Java Method", fields: []fieldDef{
		{"type", typeClass, "Type", constant},
		{"name", typeSymbol, "Name", constant},
		{"descriptor", typeSymbol, "Descriptor", constant},
		{"modifiers", typeInt, "Access Modifiers", 0},
		{"hidden", typeBoolean, "Hidden", 0},
	}},
	{id: typePackage, name: "jdk.types.Package", label: "Package", fields: []fieldDef{{"name", typeSymbol, "Name", constant}}},
	{id: typeSymbol, name: nameSymbol, label: "Symbol", simple: true, fields: []fieldDef{{"string", typeString, "String", 0}}},

	// A function has the number of its method. A name of 0 is CLASS.METHOD, a raw name of 0 is the
	// same as the name.
	{id: typeFunction, name: nameFunction, label: "Function", fields: []fieldDef{
		{"name", typeSymbol, "Name", constant},
		{"raw", typeSymbol, "Name in the Program", constant},
		{"signature", typeSymbol, "Signature", constant},
		{"module", typeSymbol, "Module", constant},
		{"file", typeSymbol, "Source File", constant},
		{"noName", typeBoolean, "Only Module and Offset", 0},
		{"startLine", typeInt, "Line of the Declaration", 0},
	}},
	{id: typeFrame, name: nameFrame, label: "Frame", fields: []fieldDef{
		{"function", typeLong, "Function", 0},
		{"line", typeInt, "Line Number", 0},
		{"bci", typeInt, "Bytecode Index plus 1", 0},
		{"kind", typeFrameKind, "Kind", constant},
		{"provenance", typeProvenance, "Provenance", constant},
		{"flags", typeInt, "Flags", 0},
		{"address", typeLong, "Address", address},
	}},
	{id: typeNodes, name: nameNodes, label: "Stacks", fields: []fieldDef{{"data", typeString, "Nodes", 0}}},
	// The stacks for other readers, from one number on: the node of each one's first sample.
	{id: typeStacks, name: nameStacks, label: "Nodes of Stacks", fields: []fieldDef{{"data", typeString, "Nodes", 0}}},
	{id: typeKind, name: nameKind, label: "Kind of Sample", fields: []fieldDef{
		{"event", typeString, "Event", 0},
		{"state", typeState, "State", constant},
		{"systemCall", typeSyscall, "System Call", constant},
		{"end", typeEnd, "End of the Stack", constant},
		{"stitched", typeBoolean, "Part Read Later", 0},
		{"guessed", typeBoolean, "With Guessed Frames", 0},
		{"number", typeInt, "Number of the Event", 0},
		{"continued", typeBoolean, "Goes on where the Thread's Sample before Ended", 0},
		{"unnamed", typeBoolean, "With Frames of Unknown Methods", 0},
		{"labels", typeString, "Labels", 0},
	}},
	{id: typeFrameKind, name: nameFrameKind, label: "Kind of Frame", simple: true, fields: []fieldDef{{"name", typeString, "Name", 0}}},
	{id: typeProvenance, name: nameProvenance, label: "How a Frame was Found", simple: true, fields: []fieldDef{{"name", typeString, "Name", 0}}},
	{id: typeState, name: nameState, label: "State", simple: true, fields: []fieldDef{{"name", typeString, "Name", 0}}},
	{id: typeEnd, name: nameEnd, label: "How a Walk Ended", simple: true, fields: []fieldDef{{"name", typeString, "Name", 0}}},
	{id: typeSyscall, name: nameSyscall, label: "System Call", simple: true, fields: []fieldDef{{"name", typeString, "Name", 0}}},

	{id: typeExecutionSample, name: nameExecutionSample, super: superEvent, label: "Method Profiling Sample",
		description: "A thread on a CPU", category: profiling, fields: own()},
	{id: typeWallClockSample, name: nameWallClockSample, super: superEvent, label: "Wall Clock Sample",
		description: "A thread, on a CPU or not", category: profiling, fields: own(fieldDef{"samples", typeInt, "Samples", unsigned})},
	{id: typeSample, name: nameSample, super: superEvent, label: "Sample of Another Event",
		category: candidEvents, fields: own()},
	{id: typeRecording, name: nameRecording, super: superEvent, label: "Recording", category: candidEvents, fields: []fieldDef{
		startTime(),
		{"version", typeString, "Version of candid", 0},
		{"engine", typeString, "Engine", 0},
		{"description", typeString, "How it Sampled", 0},
		{"command", typeString, "What was Recorded", 0},
		{"host", typeString, "Host", 0},
		{"began", typeLong, "Began", epoch},
		{"recorded", typeLong, "Recorded", nanos},
		{"unfinished", typeBoolean, "Still Recorded, or it was Cut off", 0},
	}},
	{id: typeNote, name: nameNote, super: superEvent, label: "Note", category: candidEvents, fields: []fieldDef{
		startTime(), {"number", typeInt, "Number", 0}, {"text", typeString, "What Could not be Had", 0},
	}},
	{id: typeEvent, name: nameEvent, super: superEvent, label: "Sampled Event", category: candidEvents, fields: []fieldDef{
		startTime(), {"number", typeInt, "Number", 0}, {"name", typeString, "Name", 0}, {"unit", typeString, "Unit of Weights", 0},
		{"period", typeLong, "Weight of a Usual Sample", unsigned},
	}},
	{id: typeProcess, name: nameProcess, super: superEvent, label: "Process", category: candidEvents, fields: []fieldDef{
		startTime(), {"number", typeInt, "Number", 0}, {"pid", typeLong, "Process Id", 0},
		{"command", typeString, "Command", 0}, {"runtime", typeString, "Runtime", 0},
	}},
	{id: typeThreadInfo, name: nameThreadInfo, super: superEvent, label: "Thread", category: candidEvents, fields: []fieldDef{
		startTime(), {"number", typeLong, "Number", 0}, {"pid", typeLong, "Process Id", 0}, {"tid", typeLong, "OS Thread Id", 0},
		{"name", typeString, "Name", 0}, {"osName", typeString, "OS Thread Name", 0}, {"kind", typeString, "What it is for", 0},
		{"cpuTime", typeLong, "CPU Time", nanos},
	}},
	{id: typeLosses, name: nameLosses, super: superEvent, label: "Losses", category: candidEvents, fields: []fieldDef{
		startTime(), {"lost", typeLong, "Samples Lost", unsigned}, {"throttled", typeLong, "Times Throttled", unsigned},
	}},

	{id: typeCost, name: nameCost, super: superEvent, label: "Cost of the Recording so far", category: candidEvents, fields: []fieldDef{
		startTime(), {"copying", typeLong, "Copying Stacks, in the Targets' Time", nanos}, {"targetCpu", typeLong, "CPU Time of the Targets", nanos},
		{"ownCpu", typeLong, "CPU Time of candid", nanos}, {"memory", typeLong, "Memory of candid at its Peak", dataSize},
		{"firstWalked", typeLong, "First Sample Walked After", nanos},
		{"samples", typeLong, "Of a Recording of so many Samples, 0: this one", unsigned}, {"recorded", typeLong, "And of this Length", nanos},
	}},

	{id: typeActiveSetting, name: nameActiveSetting, super: superEvent, label: "Setting", category: []string{"Flight Recorder"}, fields: []fieldDef{
		startTime(), {"id", typeLong, "Event Id", 0}, {"name", typeString, "Setting Name", 0}, {"value", typeString, "Setting Value", 0},
	}},

	{id: typeLabel, name: "jdk.jfr.Label", super: superAnnotation, fields: []fieldDef{{"value", typeString, "", 0}}},
	{id: typeDescription, name: "jdk.jfr.Description", super: superAnnotation, fields: []fieldDef{{"value", typeString, "", 0}}},
	{id: typeCategory, name: "jdk.jfr.Category", super: superAnnotation, fields: []fieldDef{{"value", typeString, "", array}}},
	{id: typeContentType, name: "jdk.jfr.ContentType", super: superAnnotation},
	{id: typeTimestamp, name: "jdk.jfr.Timestamp", super: superAnnotation, label: "Timestamp", contentType: true, fields: []fieldDef{{"value", typeString, "", 0}}},
	{id: typeTimespan, name: "jdk.jfr.Timespan", super: superAnnotation, label: "Timespan", contentType: true, fields: []fieldDef{{"value", typeString, "", 0}}},
	{id: typeUnsigned, name: "jdk.jfr.Unsigned", super: superAnnotation, label: "Unsigned Value", contentType: true},
	{id: typeMemoryAddress, name: "jdk.jfr.MemoryAddress", super: superAnnotation, label: "Memory Address", contentType: true},
	{id: typeDataAmount, name: "jdk.jfr.DataAmount", super: superAnnotation, label: "Data Amount", contentType: true, fields: []fieldDef{{"value", typeString, "", 0}}},
	{id: typePercentage, name: "jdk.jfr.Percentage", super: superAnnotation, label: "Percentage", contentType: true},
}
