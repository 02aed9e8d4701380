// Package golang finds the callers of code that the Go compiler made, from the
// table that every Go program carries for its own tracebacks (pclntab), also
// when it is stripped: the size of each function's frame at each instruction.
// Go's DWARF tables say the same, but nothing of where stacks end and of the
// functions that change from one stack to another.
//
// Sources of what is said here of formats and functions: in Go's repository
// src/internal/abi/symtab.go, src/runtime/symtab.go, runtime2.go, traceback.go,
// asm_amd64.s, asm_arm64.s, sys_linux_amd64.s, sys_linux_arm64.s and
// cmd/link/internal/ld/pcln.go, in the versions named beside each table.
//
// All addresses are those of the file, not of a process, except where a Cursor
// is moved.
package golang
