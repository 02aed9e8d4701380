// Package pgo turns recordings into the files by which compilers and linkers make a program faster:
// profiles for Go, LLVM and gcc, orders of functions for linkers, input for BOLT.
//
// A recording has the addresses of samples and of calls. Everything else is read from the very file
// that ran, found by its build id: functions, source lines, the functions inlined there, the
// instructions. So a recording does not have to hold them.
package pgo
