package suspend

import "golang.org/x/sys/unix"

// selectCall is the older call for what select(2) does.
const selectCall = unix.SYS_SELECT
