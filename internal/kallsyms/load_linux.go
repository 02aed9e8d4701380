package kallsyms

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Load reads the symbols of the running kernel. The error is a *RestrictedError if the kernel hides
// its addresses from this user.
func Load() (*Symbols, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil, fmt.Errorf("kernel symbols: %w (%w)", err, ErrUnsupported)
	}
	defer f.Close()
	s, err := Parse(f)
	if errors.Is(err, ErrRestricted) {
		return nil, restricted()
	}
	if err != nil {
		return nil, fmt.Errorf("kernel symbols: /proc/kallsyms: %w", err)
	}
	return s, nil
}

// restricted returns the error for a kernel that hides its addresses.
func restricted() error {
	return &RestrictedError{KptrRestrict: sysctl("kernel/kptr_restrict"), Paranoid: sysctl("kernel/perf_event_paranoid")}
}

func sysctl(name string) string {
	b, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
