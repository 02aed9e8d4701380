package perfscript

import (
	"bytes"
	"strconv"
	"strings"
)

// header is the first line of a sample:
//
//	java 4711/4712 [003] 46167.075463:    2004008 cpu-clock:ppp:  7f12 f+0x3 (/lib)
//
// Only the name of the event is always there.
type header struct {
	who    []byte // "java 4711/4712"
	event  []byte // without the colon
	rest   []byte // what follows it
	time   uint64 // ns
	weight uint64
	notice bool // the line is not a sample: it begins with PERF_RECORD_

	timed, weighed bool
	lone           bool // the stack is what followed the event

	thread uint32
	kind   int
}

// parseHeader reads the first line of a sample. A thread's name may contain spaces, digits and
// colons, so the first position is used from which on everything is as perf prints it.
func parseHeader(line []byte) (header, bool) {
	for at := 0; at < len(line); {
		end := at
		for end < len(line) && line[end] != ' ' {
			end++
		}
		token := line[at:end]
		if _, ok := parseTime(token); ok {
			// Without a thread's number: -F comm,time,event.
			h, ok := parseFields(line, at)
			h.who = bytes.TrimSpace(line[:at])
			return h, ok
		}
		if isThread(token) {
			if h, ok := parseFields(line, end); ok {
				h.who = bytes.TrimSpace(line[:end])
				return h, true
			}
		}
		at = end
		for at < len(line) && line[at] == ' ' {
			at++
		}
	}
	return header{}, false
}

// parseFields reads what follows the thread.
func parseFields(line []byte, at int) (header, bool) {
	var h header
	for tokens := 0; tokens < 8; tokens++ {
		for at < len(line) && line[at] == ' ' {
			at++
		}
		end := at
		for end < len(line) && line[end] != ' ' && line[end] != '\t' {
			end++
		}
		token := line[at:end]
		if len(token) == 0 {
			return h, false
		}
		at = end
		if t, ok := parseTime(token); ok && !h.timed {
			h.time, h.timed = t, true
			continue
		}
		switch {
		case token[0] == '[' && token[len(token)-1] == ']' && isDigits(token[1:len(token)-1]): // the CPU
		case bytes.HasPrefix(token, []byte("PERF_RECORD_")):
			h.notice, h.rest = true, line[end-len(token):]
			return h, true
		case isDigits(token) && !h.weighed:
			h.weight, _ = strconv.ParseUint(string(token), 10, 64)
			h.weighed = true
		case isEvent(token):
			h.event, h.rest = token[:len(token)-1], line[end:]
			h.lone = true
			return h, true
		case isFlags(token): // -F misc, -F flags
		default:
			return h, false
		}
	}
	return h, false
}

// isThread reports whether a token is a thread's number, or a process's and a thread's: 12/13.
func isThread(b []byte) bool {
	pid, tid, two := bytes.Cut(b, []byte("/"))
	if !two {
		return isNumber(pid)
	}
	return isNumber(pid) && isNumber(tid)
}

func isNumber(b []byte) bool {
	return len(b) > 0 && len(b) <= 11 && isDigits(bytes.TrimPrefix(b, []byte("-")))
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

// isFlags reports whether a token may be the letters of -F misc: KHSU and the like.
func isFlags(b []byte) bool {
	if len(b) > 4 {
		return false
	}
	for _, c := range b {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

// isEvent reports whether a token is an event's name followed by a colon.
func isEvent(b []byte) bool {
	if len(b) < 2 || b[len(b)-1] != ':' || isDigits(b[:len(b)-1]) {
		return false
	}
	if _, ok := parseTime(b); ok {
		return false
	}
	c := b[0]
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= '0' && c <= '9' || c >= 0x80
}

// parseTime reads "46167.075463:", seconds with 6 or 9 decimals, as ns.
func parseTime(b []byte) (uint64, bool) {
	b, ok := bytes.CutSuffix(b, []byte(":"))
	whole, part, point := bytes.Cut(b, []byte("."))
	if !ok || !point || len(whole) == 0 || len(whole) > 9 || len(part) == 0 || len(part) > 9 || !isDigits(whole) || !isDigits(part) {
		return 0, false
	}
	var s, ns uint64
	for _, c := range whole {
		s = 10*s + uint64(c-'0')
	}
	for i := range 9 {
		ns *= 10
		if i < len(part) {
			ns += uint64(part[i] - '0')
		}
	}
	return 1e9*s + ns, true
}

// splitWho separates the name and the numbers of a thread.
func splitWho(text []byte) (name string, pid, tid int) {
	s := string(text)
	if at := strings.LastIndexByte(s, ' '); isThread(text[at+1:]) {
		numbers := s[at+1:]
		s = strings.TrimSpace(s[:max(at, 0)])
		p, t, two := strings.Cut(numbers, "/")
		if !two {
			p, t = "", numbers
		}
		pid, _ = strconv.Atoi(p)
		tid, _ = strconv.Atoi(t)
		if two && pid < 0 && tid > 0 { // perf prints -1 for unknown numbers
			pid = tid
		}
	}
	if s == "" {
		s = "[unknown]"
		if tid != 0 {
			s = ":" + strconv.Itoa(tid)
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD"), pid, tid
}
