// Package v8 knows the frames of V8's code in other processes (node): its built-in functions
// and what its compilers generate.
//
// All of V8's code that calls has a frame pointer of its own: rbp points at the caller's rbp, above
// which the return address lies (src/execution/frame-constants.h). A chain of frame pointers is
// therefore proved, not guessed, if each return address on the way leads into V8's own code. That
// code is the blob of built-in functions, which the program's file holds between two symbols and V8
// may map a second time beside its heap, and pages of code, which are recognised by V8's own
// records of them (see VM.codePage). The frame of a stopped thread may be half built: that is
// decided by reading the code (leaf_x86.go).
//
// Names come from the heap, in which V8's collector moves objects. They are read after the sample,
// and accepted only if what the copied stack says of the frame agrees with them (names.go).
//
// Offsets and types are what V8 publishes about itself for debuggers, the symbols v8dbg_*
// (tools/gen-postmortem-metadata.py); those that it does not publish are in a table with their
// source.
package v8
