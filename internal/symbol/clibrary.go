package symbol

import (
	"path"
	"strings"
)

// cLibraries are the beginnings of the file names of C libraries and their
// dynamic linkers (glibc up to 2.33 has libc-2.31.so).
var cLibraries = []string{"libc.so.", "libc-2.", "libpthread.so.", "libpthread-2.", "ld-linux", "ld-2.", "ld-musl-", "libc.musl-"}

// isCLibrary reports whether a file is the C library. Every program calls it, its
// symbols name its functions, and where in them time goes is of use to those who
// work on it only; yet its line tables, where a debug package is installed, are
// 12 MB packed into 4, which take 60 ms of CPU to unpack at the first frame.
func isCLibrary(name string) bool {
	base := path.Base(name)
	for _, l := range cLibraries {
		if strings.HasPrefix(base, l) {
			return true
		}
	}
	return false
}
