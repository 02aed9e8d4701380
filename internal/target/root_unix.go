//go:build !windows

package target

import "strconv"

// Root returns the root directory that the process sees, as a path of ours.
func (p *Process) Root() string { return "/proc/" + strconv.Itoa(p.PID) + "/root" }

// RootPath returns a path by which candid can open what the process knows as path, an absolute path
// in its mount namespace. Absolute symbolic links on the way would lead out of that namespace;
// OpenInRoot follows them correctly.
func (p *Process) RootPath(path string) string { return p.Root() + path }
