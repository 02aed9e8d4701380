//go:build !linux

package target

// Unread returns nil: on this system no read waits for another program.
func (p *Process) Unread() []string { return nil }
