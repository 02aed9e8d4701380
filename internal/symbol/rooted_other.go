//go:build !linux

package symbol

import (
	"errors"
	"os"
	"strings"
)

// openIn opens a file below dir; links that lead out of it are refused.
func openIn(dir, path string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(strings.TrimPrefix(path, "/"))
}

// ownVDSO returns an error: only Linux maps one.
func ownVDSO() (*File, error) {
	return nil, errors.New("there is no vdso on this system")
}
