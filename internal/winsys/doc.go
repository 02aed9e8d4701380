// Package winsys calls what Windows tells of processes and threads: the list of both with their times
// and states, what a process was started with, its modules, regions and mapped files. Structures are
// those of the SDK's winternl.h and of phnt (github.com/winsiderss/phnt). It does not read for longer
// than a bounded time whatever another process holds.
package winsys
