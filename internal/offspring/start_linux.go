package offspring

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starter is the thread that all processes are started from. The kernel kills a
// child for its parent's end when the thread that started it ends, not the
// process, and threads of a Go program come and go; this one stays.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// Start is cmd.Start, of a process that is killed when the calling one ends.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error, 1)
	starter() <- func() { done <- cmd.Start() }
	return <-done
}
