package perfevent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// tracefsAt is where the kernel's tracing files are mounted, if they are.
var tracefsAt = []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}

// TracepointID returns the number of a tracepoint, perf_event_attr.config. The error wraps
// capture.ErrNoEvent if there is no such tracepoint.
func TracepointID(p capture.Point) (uint64, error) {
	fail := func(err error) (uint64, error) {
		return 0, fmt.Errorf("find the tracepoint %s:%s: %w", p.System, p.Name, err)
	}
	dir, err := openTracefs()
	if err != nil {
		return fail(err)
	}
	defer dir.Close()
	root := fmt.Sprintf("/proc/self/fd/%d/events", dir.Fd())
	b, err := os.ReadFile(filepath.Join(root, p.System, p.Name, "id"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return 0, fmt.Errorf("%w, %w: this kernel has no tracepoint %s:%s%s", capture.ErrUnsupported, capture.ErrNoEvent, p.System, p.Name, others(root, p))
	case errors.Is(err, os.ErrPermission):
		return fail(fmt.Errorf("%w: %w; run as root", capture.ErrPermission, err))
	case err != nil:
		return fail(err)
	}
	id, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return fail(err)
	}
	return id, nil
}

// TracingMounted reports whether the kernel's tracing files are mounted where they may be read. If
// they are not, CAP_SYS_ADMIN is needed to open them.
func TracingMounted() bool {
	for _, at := range tracefsAt {
		if _, err := os.Stat(at + "/events"); err == nil {
			return true
		}
	}
	return false
}

// openTracefs opens the directory of the kernel's tracing files. If it is not mounted, it is opened
// without mounting it anywhere.
func openTracefs() (*os.File, error) {
	var denied error
	for _, at := range tracefsAt {
		if _, err := os.Stat(at + "/events"); err == nil {
			return os.Open(at)
		} else if errors.Is(err, os.ErrPermission) {
			denied = err
		}
	}
	fs, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err == nil {
		defer unix.Close(fs)
		var fd int
		if err = unix.FsconfigCreate(fs); err == nil {
			if fd, err = unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0); err == nil {
				return os.NewFile(uintptr(fd), "tracefs"), nil
			}
		}
	}
	if denied != nil || errors.Is(err, unix.EPERM) {
		return nil, fmt.Errorf("%w: /sys/kernel/tracing may not be read; run as root: %w", capture.ErrPermission, err)
	}
	return nil, fmt.Errorf("%w: the kernel's tracing files cannot be had: %w", capture.ErrUnsupported, err)
}

// others lists tracepoints with names similar to p's, for an error.
func others(root string, p capture.Point) string {
	dir := filepath.Join(root, p.System)
	list, err := os.ReadDir(dir)
	if err != nil {
		return ", nor any of " + p.System
	}
	var names []string
	for _, e := range list {
		if e.IsDir() && (strings.Contains(e.Name(), p.Name) || strings.Contains(p.Name, e.Name()) || common(e.Name(), p.Name) >= 6) {
			names = append(names, p.System+":"+e.Name())
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.SortFunc(names, func(a, b string) int {
		want := p.System + ":" + p.Name
		return common(b, want) - common(a, want)
	})
	return ": did you mean " + strings.Join(names[:min(3, len(names))], ", ") + "?"
}

// common returns how many letters two names have in common at their beginning.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
