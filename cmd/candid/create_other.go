//go:build !windows

package main

import "os"

// createTemp creates a file with a new name in a directory.
func createTemp(dir string) (*os.File, error) { return os.CreateTemp(dir, ".candid-*") }
