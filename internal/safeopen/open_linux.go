package safeopen

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// InRoot opens a regular file for reading. path is looked up as if root, a directory, were the root
// directory of the file system: absolute links and ".." stay below it. The error wraps ErrKind if
// path leads to something else.
func InRoot(root, path string) (*os.File, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: root, Err: err}
	}
	defer unix.Close(dir)
	fd, err := At(dir, path, false)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	f, err := Regular(fd, path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// At looks up path below the directory root, as InRoot does, and returns an O_PATH descriptor of
// what is there, which the caller closes. With noLink, a link at the end of the path is not
// followed.
func At(root int, path string, noLink bool) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	if noLink {
		how.Flags |= unix.O_NOFOLLOW
	}
	if path == "" {
		return -1, unix.ENOENT
	}
	for range 4 {
		fd, err := openat2(root, path, &how)
		switch err {
		case unix.EINTR:
			continue
		case unix.EAGAIN: // a directory on the way was moved while ".." was looked up
			continue
		case unix.ENOSYS, unix.EPERM: // before Linux 5.6, or filtered
			return walk(root, path, noLink)
		}
		return fd, err
	}
	return walk(root, path, noLink)
}

// openat2 is replaced in tests.
var openat2 = unix.Openat2

// Regular opens the file behind an O_PATH descriptor for reading, which stays the caller's. name is
// for messages. The error wraps ErrKind, and nothing is opened, if it is not a regular file, or one
// that the kernel makes up.
func Regular(fd int, name string) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG {
		return nil, fmt.Errorf("it is %s: %w", kinds[kind], ErrKind)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return nil, err
	}
	if what := madeUp[uint32(fs.Type)]; what != "" {
		return nil, fmt.Errorf("it is a file of the kernel's (%s): %w", what, ErrKind)
	}
	// A file's owner can hold a lease, for which an opener would wait for up to a minute.
	real, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(real, false) // it has no meaning for reading a regular file
	return os.NewFile(uintptr(real), name), nil
}

// kinds names the other kinds of files.
var kinds = map[uint32]string{
	unix.S_IFDIR: "a directory", unix.S_IFLNK: "a symbolic link", unix.S_IFIFO: "a FIFO", unix.S_IFSOCK: "a socket",
	unix.S_IFCHR: "a character device", unix.S_IFBLK: "a block device",
}

// madeUp are the file systems whose regular files are not stored anywhere: reading some of them acts
// on the machine (/proc/kmsg, trace_pipe, registers of devices below /sys).
var madeUp = map[uint32]string{
	unix.PROC_SUPER_MAGIC: "proc", unix.SYSFS_MAGIC: "sysfs", unix.DEBUGFS_MAGIC: "debugfs", unix.TRACEFS_MAGIC: "tracefs",
	unix.CGROUP_SUPER_MAGIC: "cgroup", unix.CGROUP2_SUPER_MAGIC: "cgroup2", unix.SECURITYFS_MAGIC: "securityfs",
	unix.SELINUX_MAGIC: "selinuxfs", unix.SMACK_MAGIC: "smackfs", unix.PSTOREFS_MAGIC: "pstore", unix.EFIVARFS_MAGIC: "efivarfs",
	unix.BPF_FS_MAGIC: "bpf", unix.BINFMTFS_MAGIC: "binfmt_misc", unix.NSFS_MAGIC: "nsfs", unix.RDTGROUP_SUPER_MAGIC: "resctrl",
	unix.DEVPTS_SUPER_MAGIC: "devpts", unix.USBDEVICE_SUPER_MAGIC: "usbdevfs", unix.XENFS_SUPER_MAGIC: "xenfs",
}

// OwnedAt opens a regular file below the directory root for a process that runs as uid, in a
// directory to which anybody may write. The error wraps ErrOwner unless the file belongs to uid, or
// to root and may be read by everybody. A link at the end of the path is not followed.
func OwnedAt(root int, path string, uid int) (*os.File, error) {
	fd, err := At(root, path, true)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	switch {
	case int(st.Uid) == uid:
	case st.Uid != 0:
		return nil, fmt.Errorf("uid %d owns it, and it is for uid %d: %w", st.Uid, uid, ErrOwner)
	case st.Mode&0o004 == 0:
		return nil, fmt.Errorf("root owns it, and uid %d may not read it: %w", uid, ErrOwner)
	}
	return Regular(fd, path)
}

// Owned is OwnedAt with candid's own root directory.
func Owned(path string, uid int) (*os.File, error) {
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	return OwnedAt(root, path, uid)
}
