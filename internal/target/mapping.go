package target

import (
	"path"
	"strings"

	"github.com/candid-profiler/candid/internal/fileid"
)

// Perm is the access permissions of a mapping.
type Perm uint8

// The bits of Perm.
const (
	PermRead Perm = 1 << iota
	PermWrite
	PermExec
	PermShared // other processes see writes; else private
)

// String formats it as /proc/PID/maps does: r-xp.
func (p Perm) String() string {
	b := [4]byte{'-', '-', '-', 'p'}
	if p&PermRead != 0 {
		b[0] = 'r'
	}
	if p&PermWrite != 0 {
		b[1] = 'w'
	}
	if p&PermExec != 0 {
		b[2] = 'x'
	}
	if p&PermShared != 0 {
		b[3] = 's'
	}
	return string(b[:])
}

// Mapping is one range of a process's address space, [Start, End).
type Mapping struct {
	Start, End uint64
	Offset     uint64 // in the file, bytes
	Perm       Perm
	Dev        uint64 // major<<20 | minor, as /proc/PID/maps numbers it
	Inode      uint64
	// Path is the path as the kernel prints it, without " (deleted)": the file's path in the mount
	// namespace of the target, or "[vdso]", "[heap]", "" and the like.
	Path    string
	Deleted bool // the file has been removed or replaced since
	// Made is when it was mapped, ns of CLOCK_MONOTONIC; 0 if that is not known.
	Made uint64
}

// ID identifies the mapped file among those that are mapped, as the kernel numbers them.
func (m Mapping) ID() fileid.ID { return fileid.ID{Dev: m.Dev, Inode: m.Inode} }

// File identifies the mapped file and the path under which it is mapped.
func (m Mapping) File() fileid.Named { return fileid.Named{ID: m.ID(), Path: m.Path} }

// Anonymous reports whether the mapping has no file and no name.
func (m Mapping) Anonymous() bool { return m.Inode == 0 && !wholePath(m.Path) }

// wholePath reports whether a path begins at a root: /lib/x, C:\x, \\server\share\x.
func wholePath(path string) bool {
	return strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\\`) || len(path) > 2 && path[1] == ':' && path[2] == '\\'
}

// BaseName returns the last part of a path, which may be one of Windows.
func BaseName(p string) string {
	if !strings.HasPrefix(p, "/") && wholePath(p) {
		p = p[strings.LastIndexByte(p, '\\')+1:]
		return p
	}
	return path.Base(p)
}

// notFiles are the paths that the kernel prints for memory that is in no file system: shared
// anonymous memory, System V segments, memfd.
var notFiles = []string{memfd, "/dev/zero", "/SYSV", "/anon_hugepage", "/[aio]", "/dmabuf", "/drm ", "/i915"}

// memfd begins the paths of files that memfd_create made.
const memfd = "/memfd:"

// Memfd reports whether the mapping is of a file that memfd_create made. It may be a program, or
// memory that a runtime generates code in.
func (m Mapping) Memfd() bool { return m.Inode != 0 && strings.HasPrefix(m.Path, memfd) }

// FileBacked reports whether the mapping is of a file that has a path.
func (m Mapping) FileBacked() bool {
	if m.Inode == 0 || !wholePath(m.Path) {
		return false
	}
	for _, p := range notFiles {
		if strings.HasPrefix(m.Path, p) {
			return false
		}
	}
	return !m.pageFile()
}

// pageFile reports whether the mapping is memory that Windows would back by its page file: Wine's server makes
// a file for it, and removes its name at once (create_temp_file in server/mapping.c).
func (m Mapping) pageFile() bool {
	return m.Deleted && m.Perm&PermShared != 0 && strings.HasPrefix(BaseName(m.Path), "tmpmap-")
}

// Contains reports whether addr lies in the mapping.
func (m Mapping) Contains(addr uint64) bool { return addr-m.Start < m.End-m.Start }
