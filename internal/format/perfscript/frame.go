package perfscript

import (
	"bytes"
	"path"
	"strings"

	"github.com/candid-profiler/candid/internal/javaname"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// line is a parsed line of a frame:
//
//	7f1234 java.util.HashMap.get+0x23 (/tmp/perf-4711.map)
type line struct {
	addr   uint64
	name   []byte // without the offset
	module string // the content of the last brackets, "" if there are none
}

// frame is what a line describes.
type frame struct {
	name      string
	raw       string // "" if the same
	signature string
	module    string
	file      string
	addr      uint64
	line      int32
	kind      walk.Kind
}

// parseFrame reads a frame, with or without an address, an offset and a module.
func parseFrame(b []byte) (line, bool) {
	b = bytes.TrimSpace(b)
	var l line
	if at := bytes.IndexByte(b, ' '); at > 0 && at <= 16 {
		if addr, ok := parseHex(b[:at]); ok && b[at+1] != '(' {
			l.addr, b = addr, bytes.TrimSpace(b[at:])
		}
	} else if addr, ok := parseHex(b); ok && len(b) >= 4 { // -F ip
		l.addr, b = addr, nil
	}
	if n := len(b); n > 0 && b[n-1] == ')' {
		end := b
		if bytes.HasSuffix(b, []byte(" (deleted))")) {
			end = b[:n-len(" (deleted))")]
		}
		at := bytes.LastIndex(end, []byte(" ("))
		// An offset is followed only by the module, whatever its name.
		if off := bytes.LastIndex(end, []byte("+0x")); off > 0 {
			hex, _, ok := bytes.Cut(end[off+3:], []byte(" ("))
			if _, good := parseHex(hex); ok && good {
				at = off + 3 + len(hex)
			}
		}
		if at > 0 {
			l.module, b = string(b[at+2:n-1]), b[:at]
		}
	}
	l.name = bytes.TrimSpace(cutOffset(b))
	return l, len(l.name) > 0 || l.addr != 0
}

// cutOffset removes a suffix such as "+0x23".
func cutOffset(b []byte) []byte {
	if at := bytes.LastIndex(b, []byte("+0x")); at > 0 {
		if _, ok := parseHex(b[at+3:]); ok {
			return b[:at]
		}
	}
	return b
}

func parseHex(b []byte) (uint64, bool) {
	var v uint64
	if len(b) == 0 || len(b) > 16 {
		return 0, false
	}
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint64(c)
	}
	return v, true
}

// lowestKernel is below all addresses of the kernel and above all of programs, on every 64-bit
// processor that perf runs on.
const lowestKernel = 0xff00 << 48

// intern makes a frame from its line. The text that perf puts in brackets determines the kind.
func (r *reader) intern(l line) frame {
	f := frame{name: strings.ToValidUTF8(string(l.name), "\uFFFD"), addr: l.addr, kind: walk.KindNative}
	module := strings.ToValidUTF8(strings.TrimSuffix(l.module, " (deleted)"), "\uFFFD")
	switch {
	case module == "inlined":
		f.kind = walk.KindInlined
	case strings.HasPrefix(module, "[kernel") || strings.HasPrefix(module, "[guest.kernel") || strings.HasSuffix(module, "/vmlinux"):
		f.kind, f.module = walk.KindKernel, "[kernel]"
	case strings.HasSuffix(module, ".ko") || strings.Contains(module, ".ko."):
		base, _, _ := strings.Cut(path.Base(module), ".")
		f.kind, f.module = walk.KindKernel, "["+base+"]"
	case l.addr >= lowestKernel:
		f.kind, f.module = walk.KindKernel, module
		if module == "" || module == "[unknown]" {
			f.module = "[kernel]"
		}
	case isPerfMap(module):
		f.kind, f.module, f.addr = walk.KindCompiled, "[jit]", 0
		if name, raw, signature, ok := javaname.PerfMap(f.name); ok {
			f.name, f.raw, f.signature = name, raw, signature
		}
	case module == "" || module == "[unknown]":
		if f.name == "" || f.name == "[unknown]" {
			f.kind = walk.KindUnknown
		}
	case strings.HasPrefix(module, "["):
		f.module = module // [vdso], [heap]
	default:
		f.module = path.Base(module)
	}
	if f.name == "" {
		f.name = "[unknown]"
	}
	return f
}

// isPerfMap reports whether a file is one in which a runtime describes its code.
func isPerfMap(module string) bool {
	base := path.Base(module)
	return strings.HasPrefix(base, "perf-") && strings.HasSuffix(base, ".map") ||
		strings.HasPrefix(base, "jitted-") && strings.HasSuffix(base, ".so")
}

// place returns the profile's frame.
func (r *reader) place(f *frame) uint32 {
	fn := profile.Func{Name: f.name, Raw: f.raw, Signature: f.signature, Module: f.module, File: f.file, NoName: f.name == "[unknown]"}
	return r.b.Frame(profile.Frame{Func: r.b.Func(fn), Line: f.line, BCI: -1, Kind: f.kind, Addr: f.addr})
}
