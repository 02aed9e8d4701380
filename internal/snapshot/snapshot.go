// Package snapshot saves one capture of a thread together with everything that walking and naming
// its stack read, and replays it: on any machine, without the process and without its files.
//
// A replay runs the same code as a recording: attach sets up a process from a target.Saved, its
// runtimes are found in the memory that was saved, and the walker and the resolvers do the rest. So
// a snapshot of a thread in Java on Linux can be walked on Windows, in milliseconds.
//
// # The file
//
// Eight bytes of magic, of which the last is the version, then one zstd frame. Unpacked, it is a
// sequence of numbers (unsigned LEB128), texts and bytes (a number of bytes, then these), in the
// order of encode in format.go:
//
//	how many snapshots follow; of each:
//	title, note, architecture, operating system (as Go names both)
//	the capture: time, pid, tid, state, system call, flags; pc, registers, which of them are known, RFLAGS;
//	the kernel's call chain; address and bytes of the stack, its top; the same of a second stack; regions
//	the process: the name of its first thread, its program, thread ids, mappings (distances between
//	addresses, offset, permissions, the number of its file, path)
//	memory: pieces, by address
//	files: the number that mappings refer to, name, build id, size, pieces by offset
//	what is expected: end, worst provenance, frames (function, module, kind, provenance, flags)
//
// A piece is its distance from the end of the last one, its length, and its bytes. Memory of a page
// of which there is any piece is readable; what is not in a piece is zero.
//
// Paths are reduced to their last part, without directories. Which files there are, and where they
// are mapped, is the only thing saved of a process besides what was read of its memory.
package snapshot

import (
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Snapshot is one capture with what walking it read.
type Snapshot struct {
	Title string // "hotspot 17.0.15"; "" for a program without a runtime
	Note  string // why it was saved
	OS    string // of the process, as Go names it

	Capture  capture.Snapshot
	Comm     string // name of the process's first thread
	Exe      string // its program, without directories
	TIDs     []uint32
	Mappings []target.Mapping
	Memory   []Piece
	Files    []File

	Want Result

	places []place // of its native frames, while it is recorded
}

// place is an address in a mapped file.
type place struct {
	inode, addr uint64
}

// File is what was read of a file.
type File struct {
	Inode   uint64 // in the Mappings; 0: it is not mapped
	Name    string // without directories
	BuildID string // of the mapped file, in hex; "" if it has none
	Size    int64
	Pieces  []Piece
}

// Piece is a range of memory or of a file. Pieces are in order and do not overlap.
type Piece struct {
	At    uint64
	Bytes []byte
}

// Result is a walked stack.
type Result struct {
	End    walk.End
	Worst  walk.Provenance
	Frames []Frame // innermost first, inlined functions before the one that holds them
}

// Frame is a function of a Result.
type Frame struct {
	Function string // "" for a frame of the kernel
	Module   string
	Kind     walk.Kind
	Prov     walk.Provenance
	Flags    walk.FrameFlags
}

// savedDevice is the device number of files in snapshots, which no system uses.
const savedDevice = 1 << 41
