//go:build !linux

package symbol

import "errors"

// ownVDSO returns an error: only Linux maps one.
func ownVDSO() (*File, error) {
	return nil, errors.New("there is no vdso on this system")
}
