package suspend

import "golang.org/x/sys/unix"

// olderCalls are further entries of interruptible, which newer architectures do not have.
var olderCalls = []int{unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_WAIT, unix.SYS_PAUSE}
