package suspend

import "golang.org/x/sys/unix"

// selectCall is the only call for what select(2) does.
const selectCall = unix.SYS_PSELECT6
