//go:build unix

package fileblocks

import (
	"os"
	"syscall"
)

// identity returns the zero value if the system reports none.
func identity(st os.FileInfo) fileID {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok || !st.Mode().IsRegular() {
		return fileID{}
	}
	return fileID{dev: uint64(s.Dev), inode: s.Ino, size: st.Size(), mtime: st.ModTime().UnixNano()}
}
