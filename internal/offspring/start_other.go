//go:build !linux

package offspring

import "os/exec"

// Start is cmd.Start: here a process outlives the one that started it.
func Start(cmd *exec.Cmd) error { return cmd.Start() }
