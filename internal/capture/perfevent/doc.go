// Package perfevent samples through Linux's perf events: it opens them, maps their ring buffers,
// parses what the kernel writes there, and is itself the engine that lets the kernel copy a
// fixed-size piece of each stack. The engine with the exact copy (package bpfcopy) uses its timers.
package perfevent
