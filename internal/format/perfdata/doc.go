// Package perfdata reads the recordings of Linux perf: perf.data, as perf record
// writes it, in a file or into a pipe, compressed or not. Frames are named from
// the files that were mapped, where these are still the same; stacks that were
// copied (--call-graph dwarf) are walked here, as candid walks its own.
//
// The layout is described in tools/perf/Documentation/perf.data-file-format.txt
// and include/uapi/linux/perf_event.h of Linux.
package perfdata
