// Package safeopen opens files at paths that somebody else chose or can change: files of a target,
// below its root directory, and files that a recording names.
//
// Opening a file can have effects. A FIFO hands over what its writer wrote, a watchdog device starts
// to count, a terminal may become candid's own, and files of /proc and /sys act when they are read.
// So a path is first turned into a descriptor that permits nothing (O_PATH), then the kind of file
// and its file system are checked, and only then is that very file opened for reading: whoever
// replaces the path in the meantime replaces nothing that candid opens. Links never lead out of the
// root directory, with or without the kernel's help (openat2).
package safeopen

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrKind says that something is no regular file on a file system that stores files, and was not
// opened.
var ErrKind = errors.New("not a regular file")

// ErrOwner says that a file belongs to a user whose files are not used there.
var ErrOwner = errors.New("it belongs to another user")

// File opens a regular file of this machine for reading, at a path that somebody else chose, such as
// the writer of a recording. The error wraps ErrKind if something else is there.
func File(path string) (*os.File, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	volume := filepath.VolumeName(whole)
	return InRoot(volume+string(filepath.Separator), whole[len(volume):])
}
