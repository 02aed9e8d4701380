// Package golang finds the callers of code that the Go compiler made, from the table that every Go
// program carries for its own tracebacks (pclntab), even if it is stripped: the size of each
// function's frame at each instruction. Go's DWARF tables say the same, but nothing about where
// stacks end and about the functions that switch from one stack to another.
//
// The facts about formats and functions are from Go's repository: src/internal/abi/symtab.go,
// src/runtime/symtab.go, runtime2.go, traceback.go, asm_amd64.s, asm_arm64.s, sys_linux_amd64.s,
// sys_linux_arm64.s and cmd/link/internal/ld/pcln.go, in the versions named beside each table.
//
// All addresses are those of the file, not of a process, except where a Cursor
// is moved.
package golang
