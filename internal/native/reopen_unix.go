//go:build unix

package native

import (
	"fmt"
	"os"
)

// reopen opens an open file again, if the system supports that; the file may have lost its name.
func reopen(f *os.File) (*os.File, bool) {
	again, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	return again, err == nil
}
