// Package outfile writes files under names that a user gave, in directories to which others may
// write.
//
// A file is written without a name, or under one that nobody can guess, and gets its name when it is
// complete: a file that is there is replaced and never written to. What another user placed there is
// not followed, not written to, and in a directory such as /tmp not replaced: he could have made the
// name lead to a file of ours.
package outfile

import "errors"

// ErrOthers says that something on the way to a file belongs to another user and was not used.
var ErrOthers = errors.New("it belongs to another user")

// Kind is what there is under a name.
type Kind uint8

// The kinds.
const (
	Absent  Kind = iota
	Regular      // a file that can be replaced
	Special      // a FIFO, a device or a socket: what is written goes through it
	Dir          // a directory
)

// prefix begins the names of files that are not complete.
const prefix = ".candid-"
