package profile

import "github.com/candid-profiler/candid/internal/walk"

var kindNames = [walk.NumKinds]string{
	walk.KindUnknown:      "unknown",
	walk.KindKernel:       "kernel",
	walk.KindNative:       "native",
	walk.KindInterpreted:  "interpreted",
	walk.KindCompiled:     "compiled",
	walk.KindC1:           "C1",
	walk.KindC2:           "C2",
	walk.KindInlined:      "inlined",
	walk.KindStub:         "stub",
	walk.KindNativeMethod: "native method",
	walk.KindAOT:          "AOT",
	walk.KindTier0:        "Tier-0",
	walk.KindInstrumented: "Tier-0 instrumented",
	walk.KindOSR:          "OSR",
	walk.KindTier1:        "Tier-1",
	walk.KindReadyToRun:   "ReadyToRun",
}

// KindName returns the name of a frame kind for people and files.
func KindName(k walk.Kind) string {
	if k < walk.NumKinds {
		return kindNames[k]
	}
	return kindNames[walk.KindUnknown]
}

// KindByName returns the kind whose KindName is name.
func KindByName(name string) (walk.Kind, bool) {
	for k, n := range kindNames {
		if n == name {
			return walk.Kind(k), true
		}
	}
	return walk.KindUnknown, false
}

var stateNames = [...]string{
	StateUnknown:  "unknown",
	StateRunning:  "running",
	StateRunnable: "runnable",
	StateSleeping: "sleeping",
	StateBlocked:  "blocked",
	StateParked:   "parked",
	StateWaiting:  "waiting",
	StateDisk:     "disk",
}

// String returns the name of the state for people and files.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return stateNames[StateUnknown]
}

// StateByName returns the state whose String is name.
func StateByName(name string) (State, bool) {
	for s, n := range stateNames {
		if n == name {
			return State(s), true
		}
	}
	return StateUnknown, false
}
