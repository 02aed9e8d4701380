package agent

import "net"

// bindUnix makes a socket.
func bindUnix(path string) (net.Listener, error) { return net.Listen("unix", path) }
