package fileid

import (
	"os"

	"golang.org/x/sys/windows"
)

func (c *Content) ask(f *os.File, _ os.FileInfo) {
	var info windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info) == nil {
		c.ID = ID{uint64(info.VolumeSerialNumber), uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow)}
	}
}
