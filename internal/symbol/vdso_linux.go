package symbol

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ownVDSO reads the vdso that the kernel mapped into this process. The kernel has one image for all
// processes of an architecture, so it also names the target's.
func ownVDSO() (*File, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		a, rest, _ := strings.Cut(line, "-")
		b, _, _ := strings.Cut(rest, " ")
		lo, err1 := strconv.ParseUint(a, 16, 64)
		hi, err2 := strconv.ParseUint(b, 16, 64)
		if err1 != nil || err2 != nil || hi <= lo || hi-lo > 1<<20 {
			break
		}
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil, err
		}
		defer mem.Close()
		buf := make([]byte, hi-lo)
		if _, err := mem.ReadAt(buf, int64(lo)); err != nil {
			return nil, fmt.Errorf("read our own vdso: %w", err)
		}
		return OpenReader(bytes.NewReader(buf), int64(len(buf)), Options{NoLines: true})
	}
	return nil, fmt.Errorf("this process has no vdso")
}
