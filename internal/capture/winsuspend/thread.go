//go:build !windows

package winsuspend

// thread is a thread of Windows.
type thread struct{}
