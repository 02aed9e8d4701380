//go:build unix

package native

import (
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
