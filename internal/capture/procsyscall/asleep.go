// Package procsyscall reads where threads wait, without stopping them: /proc/PID/task/TID/syscall
// (proc(5)) shows where a thread that sleeps in the kernel is, and its stack does not change for as
// long as it sleeps there.
//
// Reading the file takes the permission that ptrace needs and the one that MayRead checks. For a
// thread that runs or is runnable the file says only that.
package procsyscall

import "bytes"

// NoCall is the number that stands for no system call: the thread waits outside of one, for example
// for a page that it touched.
const NoCall = -1

// Place is where a thread waits.
type Place struct {
	Running bool      // or runnable; nothing else is known then
	Call    int       // the system call's number, or NoCall
	Args    [6]uint64 // of the call; zero without one
	SP, PC  uint64    // the stack pointer and program counter in user mode
}

// Parse parses a line of /proc/PID/task/TID/syscall. It does not allocate.
func Parse(b []byte) (p Place, ok bool) {
	b = bytes.TrimSuffix(b, newline)
	if bytes.Equal(b, running) {
		return Place{Running: true}, true
	}
	if bytes.HasPrefix(b, noCall) {
		p.Call, b = NoCall, b[len(noCall):]
	} else {
		n, digits := uint64(0), 0
		for len(b) > 0 && b[0] >= '0' && b[0] <= '9' && digits < 9 {
			n = n*10 + uint64(b[0]-'0')
			b, digits = b[1:], digits+1
		}
		if digits == 0 {
			return Place{}, false
		}
		p.Call = int(n)
		for i := range p.Args {
			if p.Args[i], b, ok = word(b); !ok {
				return Place{}, false
			}
		}
	}
	if p.SP, b, ok = word(b); !ok {
		return Place{}, false
	}
	if p.PC, b, ok = word(b); !ok || len(b) > 0 {
		return Place{}, false
	}
	return p, true
}

var newline, running, noCall = []byte("\n"), []byte("running"), []byte("-1")

// word parses a blank and a hexadecimal number at the front of b.
func word(b []byte) (n uint64, rest []byte, ok bool) {
	if len(b) < 4 || b[0] != ' ' || b[1] != '0' || b[2] != 'x' {
		return 0, nil, false
	}
	b = b[3:]
	i := 0
	for ; i < len(b) && i < 16; i++ {
		c := b[i]
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		default:
			return n, b[i:], i > 0
		}
	}
	return n, b[i:], i > 0
}
