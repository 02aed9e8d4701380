package native

import "os"

// identity cannot tell files of the same size and time apart on Windows. There, code comes from PE
// files, which other tables describe.
func identity(st os.FileInfo) FileID {
	return FileID{Size: st.Size(), MTime: st.ModTime().UnixNano()}
}

// reopen opens an open file again, if the system supports that.
func reopen(*os.File) (*os.File, bool) { return nil, false }
