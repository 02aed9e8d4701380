// Package native steps over machine code that came from files: by their unwind tables, by reading
// the code if there are none, and over the signal frames that the kernel builds.
package native

import (
	"container/list"
	"io"
	"sync"

	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/fileblocks"
	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/golang"
	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/target"
)

// File is what is known of one file with code, shared by all processes that map it. It may be used
// by several goroutines.
type File struct {
	ID    fileid.Content    // of the opened file: processes whose files have the same share a File
	Progs []objfile.Segment // nil if it is not a readable ELF file
	Entry uint64            // address where the program starts, 0 if there is none
	table *ehframe.Table    // nil: none
	image *peImage          // nil if it is not an image of Windows
	goes  *golang.Table     // nil: no Go code
	file  target.File       // nil if it is neither an ELF file nor a PE image
}

// maxFiles bounds how many files are kept for future processes.
const maxFiles = 512

// Files keeps the Files of all processes. It may be used by several goroutines.
type Files struct {
	mu   sync.Mutex
	byID map[fileid.Content]*list.Element
	used *list.List // of *File, the most recently used first
}

// NewFiles returns an empty cache.
func NewFiles() *Files {
	return &Files{byID: map[fileid.Content]*list.Element{}, used: list.New()}
}

// of returns the File of an opened file and takes over ownership of f. Modules keep their Files
// alive; a File that was evicted from the cache is closed with the last of them.
func (fs *Files) of(f target.File) (*File, error) {
	id, err := fileid.Of(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if e := fs.byID[id]; e != nil {
		f.Close()
		fs.used.MoveToFront(e)
		return e.Value.(*File), nil
	}
	file := openTables(fileblocks.Open(f))
	file.ID = id
	if file.Progs == nil && file.image == nil {
		f.Close()
	} else {
		file.file = f
	}
	fs.byID[id] = fs.used.PushFront(file)
	for fs.used.Len() > maxFiles {
		last := fs.used.Back()
		fs.used.Remove(last)
		delete(fs.byID, last.Value.(*File).ID)
	}
	return file, nil
}

// openTables reads the parts of an ELF or PE image that walking needs. For a file that is neither, or
// is damaged, the result is a File without tables.
func openTables(r io.ReaderAt) *File {
	file := &File{}
	e, err := objfile.Open(r)
	if err != nil {
		if file.image = openPE(r); file.image != nil {
			file.goes, _ = golang.OpenPE(file.image.Image)
		}
		return file
	}
	file.Entry, file.Progs = e.Entry, e.Segments
	if t, err := ehframe.Open(e); err == nil {
		file.table = t
	}
	if t, err := golang.Open(e); err == nil {
		file.goes = t
	}
	return file
}
