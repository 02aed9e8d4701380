//go:build !linux

package target

import "github.com/candid-profiler/candid/internal/vmread"

// Unread returns nil: on this system no read waits for another program.
func (p *Process) Unread() []string { return nil }

// EndReads does nothing: on this system no read waits for another program.
func (p *Process) EndReads(*vmread.Ends) {}
