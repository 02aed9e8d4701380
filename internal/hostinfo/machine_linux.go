package hostinfo

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Look reads the description of the machine.
func Look() (Info, error) {
	var out Info
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return out, fmt.Errorf("ask for the kernel's version: %w", err)
	}
	kernel := unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
	if b, err := os.ReadFile("/etc/os-release"); err == nil {
		out.OS = prettyName(b)
	}
	out.OS = strings.TrimPrefix(out.OS+", "+kernel, ", ")
	out.Threads = runtime.NumCPU()
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return out, err
	}
	if virtual, known := out.cpuinfo(b); virtual {
		out.Virtual = maker()
	} else if known {
		out.Virtual = "No virtualization detected"
	}
	return out, nil
}

// maker returns the manufacturer of this machine, as its firmware reports it.
func maker() string {
	var words []string
	for _, name := range []string{"sys_vendor", "product_name"} {
		b, _ := os.ReadFile("/sys/class/dmi/id/" + name)
		if s := strings.TrimSpace(string(b)); s != "" && len(s) < 100 {
			words = append(words, s)
		}
	}
	if len(words) == 0 {
		return "A virtual machine"
	}
	return strings.Join(words, " ")
}

// prettyName returns the name that a distribution gives itself.
func prettyName(osRelease []byte) string {
	for line := range strings.Lines(string(osRelease)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			if s, err := strconv.Unquote(v); err == nil {
				return s
			}
			return strings.Trim(v, `'"`)
		}
	}
	return ""
}

// cpuinfo reads /proc/cpuinfo and reports whether it shows a hypervisor, and whether it would show
// one. On arm64 the file has no model name, no cores and no flags.
func (i *Info) cpuinfo(b []byte) (virtual, known bool) {
	sockets, cores := map[string]bool{}, map[string]bool{}
	n, socket := 0, ""
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch key {
		case "processor":
			n++
		case "flags":
			known, virtual = true, virtual || slices.Contains(strings.Fields(value), "hypervisor")
		case "model name":
			i.CPU = value
		case "physical id":
			socket = value
			sockets[value] = true
		case "core id":
			cores[socket+" "+value] = true
		}
	}
	if i.CPU == "" {
		i.CPU = runtime.GOARCH
	}
	i.Sockets, i.Cores = len(sockets), len(cores)
	if n > 0 {
		i.Threads = n
	}
	i.CPUs = fmt.Sprintf("%s, %d logical CPUs", i.CPU, i.Threads)
	return virtual, known
}

// Now reads how busy the machine is.
func Now() (Load, error) {
	var out Load
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return out, err
	}
	if out.Busy, out.All, err = busy(b); err != nil {
		return out, err
	}
	if b, err = os.ReadFile("/proc/meminfo"); err != nil {
		return out, nil
	}
	total, _ := kib(b, "MemTotal:")
	available, ok := kib(b, "MemAvailable:")
	if ok && available <= total {
		out.Memory, out.MemoryUsed = total, total-available
	}
	return out, nil
}

// busy adds up the first line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq,
// softirq, steal; guest time is already included in user.
func busy(b []byte) (used, all uint64, err error) {
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	words := strings.Fields(string(line))
	if len(words) < 5 || words[0] != "cpu" {
		return 0, 0, fmt.Errorf("/proc/stat begins with %.40q", line)
	}
	for i, w := range words[1:min(len(words), 9)] {
		v, err := strconv.ParseUint(w, 10, 62)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat: %w", err)
		}
		all += v
		if i != 3 && i != 4 {
			used += v
		}
	}
	return used, all, nil
}

// kib returns the number of KiB in the line that begins with key, converted to bytes.
func kib(b []byte, key string) (uint64, bool) {
	i := bytes.Index(b, []byte(key))
	if i < 0 || i > 0 && b[i-1] != '\n' {
		return 0, false
	}
	words := bytes.Fields(b[i+len(key) : min(len(b), i+len(key)+64)])
	if len(words) < 2 || string(words[1]) != "kB" {
		return 0, false
	}
	v, err := strconv.ParseUint(string(words[0]), 10, 53)
	return v << 10, err == nil
}

// Memory reads how much memory a process uses, and its peak, in bytes.
func Memory(pid int) (resident, peak uint64, err error) {
	name := "/proc/" + strconv.Itoa(pid) + "/status"
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, 0, err
	}
	resident, ok := kib(b, "VmRSS:")
	peak, ok2 := kib(b, "VmHWM:")
	if !ok || !ok2 { // a process that is ending has none any more
		return 0, 0, fmt.Errorf("%s tells of no memory", name)
	}
	return resident, peak, nil
}
