package outfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// createTemp creates a file with a new name in a directory. Unlike those of os.CreateTemp it can be
// renamed and removed while it is open.
func createTemp(dir string) (*os.File, error) {
	var last error
	for range 1000 {
		path := filepath.Join(dir, fmt.Sprintf("%s%d", prefix, rand.Uint32()))
		name, err := windows.UTF16PtrFromString(path)
		if err != nil {
			return nil, &os.PathError{Op: "create", Path: path, Err: err}
		}
		const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
		h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, share, nil, windows.CREATE_NEW, windows.FILE_ATTRIBUTE_NORMAL, 0)
		if err == nil {
			return os.NewFile(uintptr(h), path), nil
		}
		last = &os.PathError{Op: "create", Path: path, Err: err}
		if !errors.Is(err, windows.ERROR_FILE_EXISTS) {
			break
		}
	}
	return nil, last
}
