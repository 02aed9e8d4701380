// Package vmread reads the memory of other processes without depending on them.
//
// process_vm_readv does not return while a page is missing that somebody else has to provide: another
// program, if the page is registered with userfaultfd or belongs to a file of a FUSE file system, or
// a server. The call cannot be interrupted, and with FUSE not even be killed. So it is made by a
// helper goroutine into memory of the helper's own. If its thread is found asleep in the call for
// too long, the helper is given up and another one takes its place; what it would have read counts
// as unreadable. A call that is merely waiting for a CPU is not given up.
//
// Handing a call over to a goroutine and back costs several times as much as the call, because Go's
// scheduler wakes other threads each time. A recording therefore switches to a coroutine instead, which
// only goroutines that are not locked to their threads may do (Ends.Unlocked).
package vmread

import "errors"

// ErrGivenUp says that a call did not return in time and was given up. It may return later.
var ErrGivenUp = errors.New("the read does not return")

// ErrTooMany says that nothing was read, because too many calls that were given up have not
// returned.
var ErrTooMany = errors.New("too many reads do not return")
