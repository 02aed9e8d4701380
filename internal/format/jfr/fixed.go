package jfr

import (
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Frame types are what other readers know of a frame's kind: their numbers are the same everywhere.
const (
	frameInterpreted = iota
	frameJIT
	frameInlined
	frameNative
	frameCPP
	frameKernel
	frameC1
)

var frameTypeNames = []string{"Interpreted", "JIT compiled", "Inlined", "Native", "C++", "Kernel", "C1 compiled"}

var frameTypeOf = [walk.NumKinds]byte{
	walk.KindUnknown:      frameNative,
	walk.KindKernel:       frameKernel,
	walk.KindNative:       frameNative,
	walk.KindInterpreted:  frameInterpreted,
	walk.KindCompiled:     frameJIT,
	walk.KindC1:           frameC1,
	walk.KindC2:           frameJIT,
	walk.KindInlined:      frameInlined,
	walk.KindStub:         frameNative,
	walk.KindNativeMethod: frameNative,
	walk.KindAOT:          frameJIT,
	walk.KindTier0:        frameJIT,
	walk.KindInstrumented: frameJIT,
	walk.KindOSR:          frameJIT,
	walk.KindTier1:        frameJIT,
	walk.KindReadyToRun:   frameJIT,
}

// frameType returns the type of a frame for other readers.
func (c *constants) frameType(f *profile.Frame) byte {
	if f.Kind == walk.KindNative && strings.HasPrefix(c.src.Funcs()[f.Func].Raw, "_Z") {
		return frameCPP
	}
	return frameTypeOf[min(f.Kind, walk.NumKinds-1)]
}

// names returns a pool of constants numbered from first on.
func names(typ int, first uint64, list []string) pool {
	p := pool{typ: typ}
	for i, s := range list {
		p.entry(first + uint64(i))
		p.b = appendString(p.b, s)
	}
	return p
}

// fixedPools returns the constants that never change. Constants for other readers have the numbers
// that readers rely on; candid's own begin at 1, because 0 means no constant.
func fixedPools() []pool {
	var kinds, ends []string
	for k := range walk.NumKinds {
		kinds = append(kinds, profile.KindName(k))
	}
	for e := range walk.NumEnds {
		ends = append(ends, e.String())
	}
	return []pool{
		names(typeFrameType, 0, frameTypeNames),
		names(typeThreadState, 0, threadStateNames),
		names(typeFrameKind, 1, kinds),
		names(typeProvenance, 1, provenanceNames),
		names(typeState, 1, profile.StateNames()),
		names(typeEnd, 1, ends),
	}
}

var provenanceNames = []string{walk.Exact: "exact", walk.Derived: "derived", walk.Heuristic: "heuristic"}

// Thread states that other readers know.
const (
	stateDefault = iota
	stateRunnable
	stateSleeping
)

var threadStateNames = []string{"STATE_DEFAULT", "STATE_RUNNABLE", "STATE_SLEEPING"}

func threadState(s profile.State) byte {
	switch s {
	case profile.StateUnknown:
		return stateDefault
	case profile.StateRunning, profile.StateRunnable:
		return stateRunnable
	}
	return stateSleeping
}
