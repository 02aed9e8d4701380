//go:build unix

package agent

import (
	"net"

	"golang.org/x/sys/unix"
)

// bindUnix makes a socket that nobody else may use, until its mode is set.
func bindUnix(path string) (net.Listener, error) {
	defer unix.Umask(unix.Umask(0o177))
	return net.Listen("unix", path)
}
