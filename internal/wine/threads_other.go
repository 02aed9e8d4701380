//go:build !linux

package wine

// threads returns none: Wine's processes are looked at on Linux only.
func threads(int) (map[uint32]bool, error) { return nil, nil }
