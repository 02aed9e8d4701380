package target

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/cpu"
)

// Process is one running process, held so that its id cannot come to mean another one. Its methods
// may be called from several goroutines; for its Memory, see there.
type Process struct {
	PID       int    // in candid's pid namespace
	StartTime uint64 // clock ticks since boot; identifies the process together with PID

	comm    string
	cmdline []string
	exe     string
	program program
	uid     int
	nspid   []int
	mem     *Memory
	sys     processSystem
	space   *Space // what is known without reading the process; nil: nothing
	unseen  bool   // space is all that was ever known
	saved   *Saved // where its files are; nil: on this system
}

// Memory returns the reader of the process's memory.
func (p *Process) Memory() *Memory { return p.mem }

// Comm returns the name of the process's first thread when it was opened, at most 15 bytes.
func (p *Process) Comm() string { return p.comm }

// Cmdline returns the command line as the process shows it, nil if it shows none.
func (p *Process) Cmdline() []string { return p.cmdline }

// Exe returns the path of the program in the target's mount namespace, "" if it could not be read.
// It ends with " (deleted)" if the file no longer exists.
func (p *Process) Exe() string { return p.exe }

// Arch returns the architecture of the process's code.
func (p *Process) Arch() cpu.Arch {
	if p.saved != nil && p.saved.Arch != 0 {
		return p.saved.Arch
	}
	return cpu.Host()
}

// UID returns the user that the process runs as, -1 if unknown.
func (p *Process) UID() int { return p.uid }

// NamespacePID returns the process's id in its own pid namespace: its getpid, and the number in the
// names of files that it names after itself.
func (p *Process) NamespacePID() int {
	if n := len(p.nspid); n > 0 {
		return p.nspid[n-1]
	}
	return p.PID
}

// String returns the process's id and name for display.
func (p *Process) String() string { return fmt.Sprintf("%d (%s)", p.PID, p.comm) }
