package target

import "bytes"

// stat is the used part of /proc/PID/stat (proc_pid_stat(5)).
type stat struct {
	PID       int
	Comm      string
	State     byte // R, S, D, Z, T, t, X, I, ...
	PPID      int
	Flags     uint64
	User      uint64 // clock ticks of CPU time
	System    uint64
	Threads   int
	StartTime uint64 // clock ticks since boot
	Program   program
}

// userHz is the unit of times in /proc/PID/stat, fixed at 100 a second on every
// architecture that Go runs on.
const userHz = 100

// Nanoseconds converts ticks, as returned by CPUTicks, to ns.
func Nanoseconds(ticks uint64) uint64 { return ticks * (1e9 / userHz) }

// program tells one program that a process runs from the next, by where exec put its code and its
// first stack. They differ each time if addresses are randomised. It is zero if the kernel does not
// show it.
type program struct{ code, stack uint64 }

// pfKthread is PF_KTHREAD of include/linux/sched.h, the same since Linux 2.6.27.
const pfKthread = 0x00200000

func (s *stat) kernelThread() bool { return s.Flags&pfKthread != 0 }

// parseStat parses one /proc/PID/stat. The command is in parentheses and may itself hold spaces,
// newlines and parentheses; the last ")" ends it.
func parseStat(b []byte) (s stat, ok bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 2 || end < open || b[open-1] != ' ' {
		return s, false
	}
	pid, ok := smallDecimal(b[:open-1])
	if !ok {
		return s, false
	}
	s.PID, s.Comm = pid, string(b[open+1:end])
	rest := b[end+1:]
	// Fields are numbered as in the manual: the state is the third.
	for field := 3; field <= 28; field++ {
		var word []byte
		rest = bytes.TrimLeft(rest, " \n")
		if i := bytes.IndexAny(rest, " \n"); i >= 0 {
			word, rest = rest[:i], rest[i:]
		} else {
			word, rest = rest, nil
		}
		if len(word) == 0 {
			return s, field > 22
		}
		ok := true
		switch field {
		case 3:
			s.State, ok = word[0], len(word) == 1
		case 4:
			s.PPID, ok = smallDecimal(word)
		case 9:
			s.Flags, ok = decimal(word)
		case 14:
			s.User, ok = decimal(word)
		case 15:
			s.System, ok = decimal(word)
		case 20:
			s.Threads, ok = smallDecimal(word)
		case 22:
			s.StartTime, ok = decimal(word)
		case 26:
			s.Program.code, ok = decimal(word)
		case 28:
			s.Program.stack, ok = decimal(word)
		}
		if !ok {
			return s, false
		}
	}
	return s, true
}

// status is the used part of /proc/PID/status.
type status struct {
	UID   int   // effective
	TGID  int   // the process that the thread belongs to
	NSpid []int // the process's id in each pid namespace, the outermost (ours) first
}

// parseStatus parses one /proc/PID/status. Fields that are absent stay -1 or nil.
func parseStatus(b []byte) status {
	s := status{UID: -1, TGID: -1}
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte{'\n'})
		b = rest
		key, value, ok := bytes.Cut(line, []byte{':'})
		if !ok {
			continue
		}
		switch string(key) {
		case "Tgid":
			if n, ok := smallDecimal(bytes.TrimSpace(value)); ok && s.TGID < 0 {
				s.TGID = n
			}
		case "Uid": // real, effective, saved, file system
			if f := bytes.Fields(value); len(f) == 4 && s.UID < 0 {
				// 4294967295 is a user without a number in our user namespace.
				if v, ok := decimal(f[1]); ok && v < 1<<32 {
					s.UID = int(int64(v))
				}
			}
		case "NSpid":
			if s.NSpid != nil {
				continue
			}
			for _, f := range bytes.Fields(value) {
				n, ok := smallDecimal(f)
				if !ok || len(s.NSpid) >= 64 { // the kernel nests at most 32 deep
					break
				}
				s.NSpid = append(s.NSpid, n)
			}
		}
	}
	return s
}

// parseSchedstat returns the first number of /proc/PID/schedstat: the time that the thread has run,
// in ns.
func parseSchedstat(b []byte) (ns uint64, ok bool) {
	if i := bytes.IndexAny(b, " \n"); i >= 0 {
		b = b[:i]
	}
	return decimal(b)
}

// splitCmdline splits /proc/PID/cmdline. A process may overwrite its arguments
// with anything, often one line with spaces and many zero bytes after it.
func splitCmdline(b []byte) []string {
	b = bytes.TrimRight(b, "\x00")
	if len(b) == 0 {
		return nil
	}
	parts := bytes.Split(b, []byte{0})
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = string(p)
	}
	return out
}

// smallDecimal reads a number that fits 31 bits, such as a process id.
func smallDecimal(b []byte) (int, bool) {
	v, ok := decimal(b)
	if !ok || v > 1<<31-1 {
		return 0, false
	}
	return int(v), true
}
