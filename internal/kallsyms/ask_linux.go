package kallsyms

import (
	"bytes"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// asker names addresses one at a time by the kernel's own look-up: a BPF program formats them with
// %pS. That costs a few microseconds, while reading all of /proc/kallsyms costs 50 ms, and it knows
// modules and BPF programs as they are at the moment.
type asker struct {
	prog        *ebpf.Program
	format, out *ebpf.Map
	text        [askedLen]byte
}

// askedLen is enough for the longest answer, in bytes (KSYM_SYMBOL_LEN in linux/kallsyms.h: a name,
// a module's name and two numbers).
const askedLen = 1024

// openAsker loads the program. The error wraps the kernel's; it may also be that of reading
// /proc/kallsyms, which shows whether this user may know where the kernel's code lies.
func openAsker() (a *asker, err error) {
	if err := readable(); err != nil {
		return nil, err
	}
	a = &asker{}
	defer func() {
		if err != nil {
			a.close()
			a, err = nil, fmt.Errorf("kernel symbols: ask the kernel by BPF: %w", err)
		}
	}()
	a.format, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "candid_format", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1, Flags: unix.BPF_F_RDONLY_PROG,
		Contents: []ebpf.MapKV{{Key: uint32(0), Value: [8]byte{'%', 'p', 'S'}}},
	})
	if err != nil {
		return a, err
	}
	if err = a.format.Freeze(); err != nil { // otherwise the verifier does not accept the format string
		return a, err
	}
	if a.out, err = ebpf.NewMap(&ebpf.MapSpec{Name: "candid_name", Type: ebpf.Array, KeySize: 4, ValueSize: askedLen, MaxEntries: 1}); err != nil {
		return a, err
	}
	a.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "candid_name", Type: ebpf.Syscall, Flags: unix.BPF_F_SLEEPABLE, License: "GPL",
		Instructions: asm.Instructions{
			// The context is the address; bpf_snprintf takes a pointer to it.
			asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
			asm.StoreMem(asm.RFP, -8, asm.R1, asm.DWord),
			asm.LoadMapValue(asm.R1, a.out.FD(), 0),
			asm.Mov.Imm(asm.R2, askedLen),
			asm.LoadMapValue(asm.R3, a.format.FD(), 0),
			asm.Mov.Reg(asm.R4, asm.RFP),
			asm.Add.Imm(asm.R4, -8),
			asm.Mov.Imm(asm.R5, 8),
			asm.FnSnprintf.Call(),
			asm.Return(),
		},
	})
	if err != nil {
		return a, err
	}
	// The library loads another program at the first run, to see whether the kernel can run them.
	_, err = a.prog.Run(&ebpf.RunOptions{Context: uint64(0)})
	return a, err
}

// readable returns why the kernel's addresses may not be known, nil if they may: addresses that the
// kernel hides in /proc/kallsyms are not found out by other means. The first lines of the file are
// enough.
func readable() error {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return fmt.Errorf("kernel symbols: %w (%w)", err, ErrUnsupported)
	}
	defer f.Close()
	var first [4096]byte
	n, _ := f.Read(first[:])
	// Per-CPU variables come first, from address 0 on.
	lines := bytes.Split(first[:n], []byte{'\n'})
	for _, line := range lines {
		if addr, _, _, _, ok := parseLine(line); ok && addr != 0 {
			return nil
		}
	}
	return restricted()
}

// ask names the function at addr; false if there is none.
func (a *asker) ask(addr uint64) (answer, bool) {
	if _, err := a.prog.Run(&ebpf.RunOptions{Context: addr}); err != nil {
		return answer{}, false
	}
	if err := a.out.Lookup(uint32(0), &a.text); err != nil {
		return answer{}, false
	}
	b := a.text[:]
	if n := bytes.IndexByte(b, 0); n >= 0 {
		b = b[:n]
	}
	return parseAnswer(string(b), addr)
}

func (a *asker) close() {
	if a.prog != nil {
		a.prog.Close()
	}
	if a.out != nil {
		a.out.Close()
	}
	if a.format != nil {
		a.format.Close()
	}
}
