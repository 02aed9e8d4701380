package kallsyms

import (
	"strconv"
	"strings"
)

// answer is the kernel's name for an address.
type answer struct {
	name, module string
	from, to     uint64 // where the function begins and ends
}

// parseAnswer splits the kernel's "name+0x10/0x200 [module]" for addr; names of trampolines contain
// blanks and brackets too. An address that is in no function is printed as a number.
func parseAnswer(s string, addr uint64) (answer, bool) {
	a := answer{module: image}
	plus := strings.LastIndexByte(s, '+')
	if plus <= 0 {
		return answer{}, false
	}
	where, module, ok := strings.Cut(s[plus+1:], " ")
	if ok && strings.HasPrefix(module, "[") && strings.HasSuffix(module, "]") {
		a.module = moduleName(module)
	}
	offset, size, ok := strings.Cut(where, "/")
	if !ok {
		return answer{}, false
	}
	off, err := strconv.ParseUint(offset, 0, 64)
	if err != nil || off > addr {
		return answer{}, false
	}
	length, err := strconv.ParseUint(size, 0, 64)
	if err != nil || length <= off || addr-off+length < addr {
		return answer{}, false
	}
	a.name, a.from, a.to = s[:plus], addr-off, addr-off+length
	if generatedForBPF(a.name) {
		a.module = bpfModule
	}
	return a, true
}

// bpfModule is the module of BPF programs in the kernel's list of symbols.
const bpfModule = "[bpf]"

// generatedForBPF reports whether a name is that of code which the kernel has compiled from a BPF
// program or to call one. The kernel prints it without a module, as if it were a function of the
// kernel's image (bpf_prog_ksym_set_name and bpf_ksym_add's callers in kernel/bpf).
func generatedForBPF(name string) bool {
	rest, ok := strings.CutPrefix(name, "bpf_")
	if !ok {
		return false
	}
	if tag, ok := strings.CutPrefix(rest, "prog_"); ok {
		return len(tag) >= 16 && digits(tag[:16], "0123456789abcdef") && (len(tag) == 16 || tag[16] == '_')
	}
	if number, ok := strings.CutPrefix(rest, "trampoline_"); ok {
		number, _, _ = strings.Cut(number, " ")
		return digits(number, "0123456789")
	}
	// The only dispatcher, and the operations of a struct_ops.
	return rest == "dispatcher_xdp" || strings.HasPrefix(rest, "_")
}

func digits(s, of string) bool { return s != "" && strings.Trim(s, of) == "" }
