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

// ObservationKind is a kind of observations.
type ObservationKind struct {
	Name   string // for people
	Lasts  bool   // it has a Duration
	Values []ValueType
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
	NativeModule
	NativeBranch
	GenerationSummary

	numObservationKinds
)

// ObservationKinds are all kinds. How files call them and their values is up to the formats: package jfr
// has the names of the JDK's events.
var ObservationKinds = [numObservationKinds]ObservationKind{
	OSInformation:             {Name: "OS Information", Values: []ValueType{ValueText}},
	CPUInformation:            {Name: "CPU Information", Values: []ValueType{ValueText, ValueText, ValueCount, ValueCount, ValueCount}},
	VirtualizationInformation: {Name: "Virtualization Information", Values: []ValueType{ValueText}},
	PhysicalMemory:            {Name: "Physical Memory", Values: []ValueType{ValueBytes, ValueBytes}},
	CPULoad:                   {Name: "CPU Load", Values: []ValueType{ValueShare, ValueShare, ValueShare}},
	ThreadCPULoad:             {Name: "Thread CPU Load", Values: []ValueType{ValueThread, ValueShare, ValueShare}},
	ResidentSetSize:           {Name: "Resident Set Size", Values: []ValueType{ValueBytes, ValueBytes}},
	JVMInformation:            {Name: "JVM Information", Values: []ValueType{ValueText, ValueText, ValueText, ValueText, ValueText, ValueEpoch, ValueCount}},
	InitialSystemProperty:     {Name: "Initial System Property", Values: []ValueType{ValueText, ValueText}},
	BooleanFlag:               {Name: "Boolean Flag", Values: []ValueType{ValueText, ValueFlag, ValueText}},
	LongFlag:                  {Name: "Long Flag", Values: []ValueType{ValueText, ValueSigned, ValueText}},
	UnsignedLongFlag:          {Name: "Unsigned Long Flag", Values: []ValueType{ValueText, ValueCount, ValueText}},
	IntFlag:                   {Name: "Int Flag", Values: []ValueType{ValueText, ValueSigned, ValueText}},
	UnsignedIntFlag:           {Name: "Unsigned Int Flag", Values: []ValueType{ValueText, ValueCount, ValueText}},
	DoubleFlag:                {Name: "Double Flag", Values: []ValueType{ValueText, ValueFloat, ValueText}},
	StringFlag:                {Name: "String Flag", Values: []ValueType{ValueText, ValueText, ValueText}},
	CompilerConfiguration:     {Name: "Compiler Configuration", Values: []ValueType{ValueCount, ValueFlag, ValueFlag}},
	GCConfiguration:           {Name: "GC Configuration", Values: []ValueType{ValueText, ValueText, ValueCount, ValueCount, ValueFlag, ValueFlag, ValueFlag, ValueMillis, ValueCount}},
	GCHeapConfiguration:       {Name: "GC Heap Configuration", Values: []ValueType{ValueBytes, ValueBytes, ValueBytes, ValueFlag, ValueText, ValueBytes}},
	GarbageCollection:         {Name: "Garbage Collection", Lasts: true, Values: []ValueType{ValueCount, ValueText, ValueText, ValueNanos, ValueNanos}},
	YoungGarbageCollection:    {Name: "Young Garbage Collection", Lasts: true, Values: []ValueType{ValueCount}},
	OldGarbageCollection:      {Name: "Old Garbage Collection", Lasts: true, Values: []ValueType{ValueCount}},
	GCPhasePause:              {Name: "GC Phase Pause", Lasts: true, Values: []ValueType{ValueCount, ValueText}},
	GCHeapSummary:             {Name: "Heap Summary", Values: []ValueType{ValueCount, ValueText, ValueBytes}},
	CollectorStatistics:       {Name: "Collector Statistics", Values: []ValueType{ValueText, ValueCount, ValueNanos}},
	HeapStatistics:            {Name: "Heap Statistics", Values: []ValueType{ValueBytes, ValueBytes, ValueBytes, ValueBytes}},
	SafepointStatistics:       {Name: "Safepoint Statistics", Values: []ValueType{ValueCount, ValueNanos, ValueNanos}},
	ClassLoadingStatistics:    {Name: "Class Loading Statistics", Values: []ValueType{ValueCount, ValueCount}},
	JavaThreadStatistics:      {Name: "Java Thread Statistics", Values: []ValueType{ValueCount, ValueCount, ValueCount, ValueCount}},
	CompilerStatistics:        {Name: "Compiler Statistics", Values: []ValueType{ValueCount, ValueCount, ValueCount, ValueCount, ValueCount, ValueBytes, ValueBytes, ValueBytes, ValueBytes, ValueMillis, ValueMillis}},
	NativeLibrary:             {Name: "Native Library", Values: []ValueType{ValueText, ValueAddress, ValueAddress}},
	NetworkUtilization:        {Name: "Network Utilization", Values: []ValueType{ValueText, ValueCount, ValueCount}},
	// A file that samples are in, which may be read again by whoever has the recording, if it is
	// still the same.
	NativeModule: {Name: "Native Module", Values: []ValueType{ValueText, ValueText, ValueText}},
	// A branch that was taken in machine code, with the run of instructions that it led to: the files
	// and addresses of the branch and its target, the last instruction of the run, how often that was
	// seen, how often of those the way there depended on memory that was read after the sample, and
	// how often nothing is known of what came after the run.
	NativeBranch: {Name: "Native Branch", Values: []ValueType{ValueText, ValueAddress, ValueText, ValueAddress, ValueAddress, ValueCount, ValueCount, ValueCount}},
	// A part of a heap, and what of it is free between objects, before and after a collection.
	GenerationSummary: {Name: "Generation Summary", Values: []ValueType{ValueCount, ValueText, ValueBytes, ValueBytes, ValueBytes, ValueBytes}},
}

// Observe appends an observation, which must fit its kind.
func (b *Builder) Observe(o Observation) {
	o.plain()
	b.p.Observations = append(b.p.Observations, o)
}

// Observations returns the observations since SumUp dropped others, and how many were dropped.
func (b *Builder) Observations() (list []Observation, gone int) { return b.p.Observations, b.gone }
