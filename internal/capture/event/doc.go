// Package event parses what users write after -e into the events that engines sample by: candid's
// own names, all of perf's names for software and hardware counters, tracepoints and probes.
package event
