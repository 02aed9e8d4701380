package symbol

import (
	"path"
	"strings"
)

// cLibraries are prefixes of the file names of C libraries and their dynamic linkers (glibc up to
// 2.33 has libc-2.31.so).
var cLibraries = []string{"libc.so.", "libc-2.", "libpthread.so.", "libpthread-2.", "ld-linux", "ld-2.", "ld-musl-", "libc.musl-"}

// isCLibrary reports whether a file is the C library. Every program calls it, and its symbols name
// its functions. Line numbers in it are useful only to those who work on it; yet its line tables,
// if a debug package is installed, are 12 MB packed into 4, which take 60 ms of CPU to unpack at
// the first frame.
func isCLibrary(name string) bool {
	base := path.Base(name)
	for _, l := range cLibraries {
		if strings.HasPrefix(base, l) {
			return true
		}
	}
	return false
}
