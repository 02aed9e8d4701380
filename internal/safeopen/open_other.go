//go:build !linux

package safeopen

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// InRoot opens a regular file for reading. Links that lead out of root, a directory, are refused.
// The error wraps ErrKind if path leads to something else than a regular file.
func InRoot(root, path string) (*os.File, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	name := strings.TrimLeft(filepath.ToSlash(path), "/")
	before, err := r.Stat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: path, Err: fmt.Errorf("its type is %v: %w", before.Mode().Type(), ErrKind)}
	}
	return r.Open(name)
}

// Owned returns an error: who owns a file is checked on Linux only.
func Owned(path string, uid int) (*os.File, error) {
	return nil, &os.PathError{Op: "open", Path: path, Err: errors.ErrUnsupported}
}
