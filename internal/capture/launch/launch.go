// Package launch starts a command so that it can be made a target before its first instruction: the
// child first runs candid's own binary, waits there for a byte on a pipe, and then becomes the
// command with the same process ID. It uses no signal and no tracing, and leaves nothing in the
// command's environment or arguments.
package launch

import "errors"

// ErrNotFound says that there is no such command (exit code 127 of a shell).
var ErrNotFound = errors.New("command not found")

// ErrNotExecutable says that the command exists but cannot be run (126).
var ErrNotExecutable = errors.New("command cannot be executed")

// Begin is how far the child, still a copy of candid, had got when it became the command. It is
// zero if the child had ended before.
type Begin struct {
	// Time is just before the child executed the command, Done is when that was known to be over:
	// ns, CLOCK_MONOTONIC.
	Time, Done uint64
	// CPU time until Time, in ns, of the thread that became the command's first, and of the whole
	// process.
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
