// Package guard is the process that resumes a thread which candid had suspended when it was ended.
// The program becomes the guard during package initialization, if its first argument says so: then
// it does nothing but wait for candid's end. It has hardly any imports, so that little of candid is
// initialized for it.
package guard

// Name is the first argument by which a copy of candid knows that it is the guard. The handles of
// the shared page and of candid follow, as numbers.
const Name = "candid: guard"

// Page is the memory that candid shares with its guard.
type Page struct {
	// State is where the thread named below stands; candid stores it around each call.
	State uint32
	// Ready is set by the guard when it waits.
	Ready   uint32
	tid     uint32
	pid     uint32
	created int64  // FILETIME, of the thread
	before  uint32 // how often it was suspended by others
}

// Values of State.
const (
	Free       = 0 // nothing is suspended
	Suspending = 1 // it may be
	Suspended  = 2 // it is
	Resuming   = 3 // it may still be
)

// Name says which thread is suspended next: its id, its process and the time of its creation, and
// how often it was suspended already when that was last known. State must be Free.
func (p *Page) Name(tid, pid uint32, created int64, before uint32) {
	p.tid, p.pid, p.created, p.before = tid, pid, created, before
}
