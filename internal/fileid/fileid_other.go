//go:build !linux && !darwin && !windows

package fileid

import "os"

func (*Content) ask(*os.File, os.FileInfo) {}
