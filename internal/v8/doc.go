// Package v8 knows the frames of V8's code in other processes (node): its built-in functions
// and what its compilers generate.
//
// All of V8's code that calls has a frame pointer of its own: rbp points at the caller's rbp,
// above which the return address lies (src/execution/frame-constants.h). So a chain of frame
// pointers is proved, not guessed, where each return address on the way leads into V8's own
// code. That is the blob of built-in functions, which the program's file holds between two
// symbols and V8 may map a second time beside its heap, and pages of code, which are told by
// what V8 itself keeps of them (see VM.codePage). Where a thread stopped its frame may be half
// built: that is decided by reading the code (leaf_x86.go).
//
// Names come from the heap, which V8's collector moves things about in: they are read after
// the sample, and taken only if what the copied stack says of the frame agrees with them
// (names.go).
//
// Offsets and types are what V8 publishes of itself for debuggers, the symbols v8dbg_*
// (tools/gen-postmortem-metadata.py); what it does not is in a table with its source.
package v8
