//go:build !windows && !linux

package outfile

import "os"

// createTemp creates a file with a new name in a directory.
func createTemp(dir string) (*os.File, error) { return os.CreateTemp(dir, prefix+"*") }
