// Package event turns what users write after -e into what engines sample by:
// candid's own names, all of perf's for software and hardware counters,
// tracepoints and probes.
package event
