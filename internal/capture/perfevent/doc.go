// Package perfevent samples through Linux's perf events: it opens them, maps
// their ring buffers, reads what the kernel writes there, and is itself the
// engine that lets the kernel copy a fixed piece of each stack. The engine with
// the exact copy (package bpfcopy) borrows its timers.
package perfevent
