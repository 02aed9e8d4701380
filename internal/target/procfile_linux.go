package target

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// tidPath returns the directory of a thread's files, relative to /proc/PID.
func tidPath(tid int) string { return "task/" + strconv.Itoa(tid) + "/" }

// openat opens a file below the process's /proc directory.
func (p *Process) openat(name string, flags int) (int, error) {
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	if p.sys.dir < 0 {
		return -1, os.ErrClosed
	}
	for {
		fd, err := unix.Openat(p.sys.dir, name, flags|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// readSmall reads a file of one record that fits buf; any rest is left out. The kernel returns such
// a record in one read, so a second read for each of thousands of threads is not needed.
func (p *Process) readSmall(name string, buf []byte) ([]byte, error) {
	fd, err := p.openat(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	n, err := unix.Read(fd, buf)
	for err == unix.EINTR {
		n, err = unix.Read(fd, buf)
	}
	unix.Close(fd)
	return buf[:max(n, 0)], err
}

// readFull reads until buf is full or the file ends.
func readFull(fd int, buf []byte) (int, error) {
	total := 0
	for total < len(buf) {
		n, err := unix.Read(fd, buf[total:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return total, err
		}
		if n == 0 {
			break
		}
		total += n
	}
	return total, nil
}

// readFile reads a whole file of at most limit bytes; any rest is left out. The files of /proc
// report no size, and return about a page per read.
func (p *Process) readFile(name string, limit int) ([]byte, error) {
	fd, err := p.openat(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 8<<10)
	for n := 0; ; {
		got, err := readFull(fd, buf[n:])
		if n += got; err != nil || n < len(buf) || n >= limit {
			return buf[:min(n, limit)], err
		}
		buf = append(buf, make([]byte, len(buf))...)
	}
}

// readlink reads a symbolic link below the process's /proc directory.
func (p *Process) readlink(name string) (string, error) {
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	if p.sys.dir < 0 {
		return "", os.ErrClosed
	}
	var buf [4096]byte
	n, err := unix.Readlinkat(p.sys.dir, name, buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
