package doctor

import (
	"bufio"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

const (
	dpkgInfo = "var/lib/dpkg/info"
	// maxLists bounds how many bytes of dpkg's lists are read; a full desktop has about 40 MiB.
	maxLists = 256 << 20
)

// owners finds the Debian packages that files belong to, by dpkg's lists of files. Files that
// belong to none are left out.
func owners(root fs.FS, paths []string) map[string]string {
	out := map[string]string{}
	if len(paths) == 0 {
		return out
	}
	lists, err := fs.Glob(root, dpkgInfo+"/*.list")
	if err != nil {
		return out
	}
	// Since /lib has become a link to /usr/lib a file may be listed under either.
	wanted := map[string]string{}
	for _, p := range paths {
		wanted[p] = p
		if short, ok := strings.CutPrefix(p, "/usr"); ok {
			wanted[short] = p
		} else {
			wanted["/usr"+p] = p
		}
	}
	left := int64(maxLists)
	for _, list := range lists {
		f, err := root.Open(list)
		if err != nil {
			continue
		}
		pkg, _, _ := strings.Cut(strings.TrimSuffix(path.Base(list), ".list"), ":")
		r := &io.LimitedReader{R: f, N: left}
		for s := bufio.NewScanner(r); s.Scan(); {
			if p, ok := wanted[string(s.Bytes())]; ok && packageName.MatchString(pkg) {
				out[p] = pkg
			}
		}
		left = r.N
		f.Close()
		if len(out) == len(paths) || left <= 0 {
			break
		}
	}
	return out
}

// packageName matches what Debian allows as the name of a package (Debian Policy 5.6.1).
var packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)

var openJDK = regexp.MustCompile(`^openjdk-([0-9]+)-`)

// debugPackage returns the package that should hold the symbols of another one's files:
// PACKAGE-dbgsym, except for the few that have a package made by hand.
func debugPackage(pkg string) string {
	switch m := openJDK.FindStringSubmatch(pkg); {
	case pkg == "":
		return ""
	case pkg == "libc6":
		return "libc6-dbg"
	case m != nil:
		return "openjdk-" + m[1] + "-dbg"
	}
	return pkg + "-dbgsym"
}
