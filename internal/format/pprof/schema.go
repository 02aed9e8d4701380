package pprof

import "strings"

// Field numbers of profile.proto,
// https://github.com/google/pprof/blob/main/proto/profile.proto
const (
	profileSampleType        = 1
	profileSample            = 2
	profileMapping           = 3
	profileLocation          = 4
	profileFunction          = 5
	profileStringTable       = 6
	profileTimeNanos         = 9
	profileDurationNanos     = 10
	profilePeriodType        = 11
	profilePeriod            = 12
	profileComment           = 13
	profileDefaultSampleType = 14

	valueTypeType = 1
	valueTypeUnit = 2

	sampleLocation = 1
	sampleValue    = 2
	sampleLabel    = 3

	labelKey     = 1
	labelStr     = 2
	labelNum     = 3
	labelNumUnit = 4

	mappingID             = 1
	mappingFilename       = 5
	mappingHasFunctions   = 7
	mappingHasFilenames   = 8
	mappingHasLineNumbers = 9
	mappingHasInlines     = 10

	locationID      = 1
	locationMapping = 2
	locationAddress = 3
	locationLine    = 4

	lineFunction = 1
	lineLine     = 2

	functionID         = 1
	functionName       = 2
	functionSystemName = 3
	functionFilename   = 4
	functionStartLine  = 5
)

// Labels of a sample.
const (
	labelThread = "thread"      // name
	labelKind   = "thread_kind" // one of profile.ThreadKinds
	labelSkid   = "skid"        // where the kernel delivered a sample that came late, the innermost function first
	labelTID    = "tid"
	labelPID    = "pid"
	labelState  = "state" // profile.State
	labelCall   = "syscall"
	labelStack  = "stack" // quality, see quality.go
	labelEvent  = "event" // only if there are several

	// Other programs name threads and processes by these keys.
	labelThreadID  = "thread_id"
	labelProcessID = "process_id"

	// labelPrefix is before the keys of labels that are not candid's own, where these could be taken
	// for one.
	labelPrefix = "label."
)

// writtenKey returns the key with which a label that is not candid's own is written.
func writtenKey(key string) string {
	switch key {
	case labelThread, labelKind, labelSkid, labelTID, labelPID, labelState, labelCall, labelStack, labelEvent, labelThreadID, labelProcessID:
		return labelPrefix + key
	}
	if strings.HasPrefix(key, labelPrefix) {
		return labelPrefix + key
	}
	return key
}

// privateLabel reports whether a label means something else in files that candid did not write.
func privateLabel(key string) bool {
	switch key {
	case labelKind, labelSkid, labelStack, labelEvent:
		return true
	}
	return false
}
