package kerneltypes

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Path is the file with the kernel's description of its types.
const Path = "/sys/kernel/btf/vmlinux"

// Read returns the description and a function that frees it.
func Read() (raw []byte, free func(), err error) {
	f, err := os.Open(Path)
	if err != nil {
		return nil, nil, fmt.Errorf("read the kernel's types: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("read the kernel's types: %w", err)
	}
	const most = 1 << 28
	if info.Size() <= 0 || info.Size() > most {
		return nil, nil, fmt.Errorf("the kernel's types take %d bytes", info.Size())
	}
	// Since Linux 6.16 it can be mapped, without a copy.
	if raw, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE); err == nil {
		return raw, func() { _ = unix.Munmap(raw) }, nil
	}
	raw = make([]byte, info.Size())
	for n := 0; n < len(raw); {
		got, err := f.Read(raw[n:])
		if n += got; err != nil || got == 0 {
			return nil, nil, fmt.Errorf("read the kernel's types: %d of %d bytes: %w", n, len(raw), err)
		}
	}
	return raw, func() {}, nil
}
