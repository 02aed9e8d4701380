//go:build unix

package native

import (
	"fmt"
	"os"
	"syscall"
)

func identity(st os.FileInfo) FileID {
	id := FileID{Size: st.Size(), MTime: st.ModTime().UnixNano()}
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		id.Dev, id.Inode = uint64(s.Dev), s.Ino
	}
	return id
}

// reopen opens an open file again, if the system supports that; the file may have lost its name.
func reopen(f *os.File) (*os.File, bool) {
	again, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	return again, err == nil
}
