package doctor

import (
	"strconv"
	"strings"
)

// kernelVersion parses the first two numbers of a release like 6.18.44-cloud.
func kernelVersion(release string) (major, minor int) {
	a, rest, _ := strings.Cut(release, ".")
	b := strings.FieldsFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	major, _ = strconv.Atoi(a)
	if len(b) > 0 && strings.HasPrefix(rest, b[0]) {
		minor, _ = strconv.Atoi(b[0])
	}
	return major, minor
}

// procOptions finds in the text of /proc/self/mountinfo the mount options of the file system at
// /proc (proc(5): the last mount on a directory counts).
func procOptions(mountinfo string) string {
	options := ""
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) < 10 || f[4] != "/proc" {
			continue
		}
		// A number of optional fields, a hyphen, type, source, options of the file system.
		for i := 6; i+3 < len(f); i++ {
			if f[i] == "-" {
				options = ""
				if f[i+1] == "proc" {
					options = f[i+3]
				}
				break
			}
		}
	}
	return options
}

// hidden returns how /proc hides processes from users, "" if it does not.
func hidden(options string) string {
	for o := range strings.SplitSeq(options, ",") {
		switch o {
		case "hidepid=1", "hidepid=noaccess", "hidepid=2", "hidepid=invisible", "hidepid=4", "hidepid=ptraceable":
			return o
		}
	}
	return ""
}
