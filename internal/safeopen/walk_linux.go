package safeopen

import (
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxLinks = 40   // as the kernel's MAXSYMLINKS
	maxNames = 4096 // of a path with all of its links
)

// walk is At without openat2. It opens one name after the other without following links, reads the
// links itself, and goes back (..) only to directories that it came through, so that it cannot leave
// root whatever is moved meanwhile.
func walk(root int, path string, noLink bool) (int, error) {
	var through []int // the directories below root that lead to the current one
	closeAll := func() {
		for _, fd := range through {
			unix.Close(fd)
		}
		through = through[:0]
	}
	defer closeAll()
	links := 0
	rest := names(path)
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			if n := len(through); n > 0 {
				unix.Close(through[n-1])
				through = through[:n-1]
			}
			continue
		}
		at := root
		if n := len(through); n > 0 {
			at = through[n-1]
		}
		fd, err := openLater(at, name)
		if err != nil {
			return -1, err
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			unix.Close(fd)
			return -1, err
		}
		switch kind := st.Mode & unix.S_IFMT; {
		case kind == unix.S_IFLNK && (len(rest) > 0 || !noLink):
			to, err := linkOf(fd)
			unix.Close(fd)
			if links++; err == nil && links > maxLinks {
				err = unix.ELOOP
			}
			if err != nil {
				return -1, err
			}
			if strings.HasPrefix(to, "/") {
				closeAll()
			}
			if rest = append(names(to), rest...); len(rest) > maxNames {
				return -1, unix.ENAMETOOLONG
			}
		case len(rest) == 0:
			return fd, nil
		case kind != unix.S_IFDIR:
			unix.Close(fd)
			return -1, unix.ENOTDIR
		default:
			through = append(through, fd)
		}
	}
	// The path ends at a directory: the root, or one that was gone back to.
	at := root
	if n := len(through); n > 0 {
		at = through[n-1]
	}
	return openLater(at, ".")
}

// openLater opens a name in a directory as O_PATH, a link itself and not what it leads to.
func openLater(dir int, name string) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// linkOf reads the link behind an O_PATH descriptor. What a link of /proc shows is taken as a path
// below the root, and not as the file that it stands for.
func linkOf(fd int) (string, error) {
	var buf [unix.PathMax]byte
	n, err := unix.Readlinkat(fd, "", buf[:])
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "", unix.ENOENT
	}
	return string(buf[:n]), nil
}

// names splits a path. "." and empty names mean nothing, except that a path that ends with one
// leads to a directory.
func names(path string) []string {
	var out []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			out = append(out, name)
		}
	}
	return out
}
