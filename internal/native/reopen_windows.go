package native

import "os"

// reopen opens an open file again, if the system supports that.
func reopen(*os.File) (*os.File, bool) { return nil, false }
