// Package launch starts a command so that it can be made a target before its
// first instruction: the child first runs candid's own binary, waits there for
// a word on a pipe, and then becomes the command with the same process id. No
// signal, no tracing, and nothing in the command's environment or arguments.
package launch

import "errors"

// ErrNotFound says that there is no such command (a shell's exit code 127).
var ErrNotFound = errors.New("command not found")

// ErrNotExecutable says that the command is there but cannot be run (126).
var ErrNotExecutable = errors.New("command cannot be executed")

// Begin is how far the child was, as a copy of candid, when it became the command.
// It is zero if the child was gone before.
type Begin struct {
	// Time is just before the child executed the command, Done when that was known to be
	// over: ns, CLOCK_MONOTONIC.
	Time, Done uint64
	// What the thread had run that is the command's first, and the whole process, ns.
	Thread, Process uint64
	Others          []int // the child's other threads, which ended between Time and Done
}

// Exit codes of a launching program for its own failures, as env and timeout
// use them.
const (
	CodeFailed        = 125
	CodeNotExecutable = 126
	CodeNotFound      = 127
)
