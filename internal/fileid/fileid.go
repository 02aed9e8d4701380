// Package fileid identifies files: which file it is, and which content it has.
package fileid

import "os"

// ID identifies a file as long as it exists: its number may be another file's later. File systems such as
// btrfs and overlayfs give one file different numbers in a process's mappings and in stat, so only IDs from the
// same source are compared. The zero value identifies no file.
type ID struct {
	Dev   uint64 // on Windows the volume's serial number
	Inode uint64 // on Windows the file's index
}

// Named is a mapped file with the path under which the kernel shows it.
type Named struct {
	ID
	Path string
}

// Content identifies a file's content: a file that was replaced or written since has another.
type Content struct {
	ID
	Size int64 // bytes
	// Changed is when content, name or attributes were last changed, ns since 1970: package managers and builds
	// set the time of the last write to what they like. On Windows it is that time nevertheless.
	Changed int64
}

// File is an opened file, or what was saved of one.
type File interface {
	Stat() (os.FileInfo, error)
}

// Of returns the identity of an opened file. Its ID is zero if the system does not report one, or if it is
// no file of this system. The error is that of Stat.
func Of(f File) (Content, error) {
	st, err := f.Stat()
	if err != nil {
		return Content{}, err
	}
	c := Content{Size: st.Size(), Changed: st.ModTime().UnixNano()}
	if file, ok := f.(*os.File); ok {
		c.ask(file, st)
	}
	return c, nil
}
