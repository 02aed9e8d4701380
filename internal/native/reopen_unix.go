//go:build unix

package native

import (
	"fmt"
	"os"

	"github.com/candid-profiler/candid/internal/target"
)

// reopen opens an open file again, if the system supports that; the file may have lost its name.
func reopen(file target.File) (target.File, bool) {
	f, ok := file.(*os.File)
	if !ok {
		return nil, false
	}
	again, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	return again, err == nil
}
