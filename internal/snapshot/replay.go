package snapshot

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Replay walks the capture again, with candid as it is now, and names its frames. It may be called
// from several goroutines.
func (s *Snapshot) Replay() (Result, error) {
	files := &files{s: s}
	files.left.Store(maxRead)
	saved := target.Saved{
		PID: int(s.Capture.PID), Comm: s.Comm, Exe: s.Exe, Arch: s.Capture.Regs.Arch,
		Mappings: s.Mappings, Memory: memory(s.Memory), Open: files.open, OpenPath: files.openPath, TIDs: s.TIDs,
	}
	r, _, _, err := run(saved.Process(), &s.Capture)
	return r, err
}

// run sets up a process, walks one capture and names its frames. title is what the program is
// built on, places are those of native frames.
func run(t *target.Process, c *capture.Snapshot) (r Result, title string, places []place, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("candid has a fault, please report it: walking a snapshot: %v", p)
		}
	}()
	p, err := attach.New(t, attach.Options{
		Files: native.NewFiles(), Finders: attach.NewFinders(),
		Open: func(path string) (*os.File, error) {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
		// Source lines take most of what is read of a program, and have no part in how it is walked.
		Names: func(names *symbol.Native) { names.NoDebugFiles, names.NoLines = true, true },
	})
	if err != nil {
		return r, "", nil, err
	}
	defer p.Close()
	defer func() { p.Names.Close() }()
	p.Look()
	p.BeginBatch()
	var stack walk.Stack
	p.Walker.Walk(c, t.Memory(), &stack)
	p.Walker.Join(&stack)
	r.End, r.Worst = stack.End, stack.Worst
	var named []symbol.Frame
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if f.Kind == walk.KindKernel {
			r.Frames = append(r.Frames, Frame{Kind: f.Kind, Prov: f.Prov, Flags: f.Flags})
			continue
		}
		if m, addr, ok := p.Native.Locate(*f); ok && f.Owner == p.NativeOwner() {
			if f.Flags&walk.ReturnAddress != 0 {
				addr--
			}
			places = append(places, place{m.Mapping.Inode, addr})
		}
		named = p.Resolve(*f, named[:0])
		for _, n := range named {
			r.Frames = append(r.Frames, Frame{Function: n.Function, Module: n.Module, Kind: n.Kind, Prov: f.Prov, Flags: n.Flags | f.Flags})
		}
	}
	return r, p.Title(), places, nil
}

// memory is the memory that was saved.
type memory []Piece

const pageSize = 4096

// ReadAt implements target.Reader.
func (m memory) ReadAt(p []byte, addr uint64) error {
	if addr+uint64(len(p)) < addr {
		return fmt.Errorf("read %d bytes at %#x: %w", len(p), addr, target.ErrMemory)
	}
	for page := addr &^ (pageSize - 1); page < addr+uint64(len(p)); page += pageSize {
		i := sort.Search(len(m), func(i int) bool { return m[i].At+uint64(len(m[i].Bytes)) > page })
		if i == len(m) || m[i].At >= page+pageSize {
			return fmt.Errorf("read %d bytes at %#x, which were not saved: %w", len(p), addr, target.ErrMemory)
		}
	}
	fill(p, addr, m)
	return nil
}

// fill fills p, which begins at a place, from pieces.
func fill(p []byte, at uint64, from []Piece) {
	clear(p)
	end := at + uint64(len(p))
	i := sort.Search(len(from), func(i int) bool { return from[i].At+uint64(len(from[i].Bytes)) > at })
	for ; i < len(from) && from[i].At < end; i++ {
		if f := &from[i]; f.At >= at {
			copy(p[f.At-at:], f.Bytes)
		} else {
			copy(p, f.Bytes[at-f.At:])
		}
	}
}

// maxRead bounds the bytes that a replay reads of files: what was not saved is zero, and a snapshot may
// say that its files and their tables have any size.
const maxRead = 256 << 20

// files are those of a snapshot that is being replayed.
type files struct {
	s    *Snapshot
	left atomic.Int64 // bytes that may still be read
}

// open opens the file of a mapping.
func (fs *files) open(m target.Mapping) (target.File, error) {
	s := fs.s
	i := slices.IndexFunc(s.Files, func(f File) bool { return f.Inode == m.Inode && (m.Inode != 0 || f.Name == m.Path) })
	if i < 0 || m.Inode != 0 && m.Dev != savedDevice {
		return nil, &os.PathError{Op: "open", Path: m.Path, Err: os.ErrNotExist}
	}
	return opened{&s.Files[i], i, &fs.left}, nil
}

// openPath opens a file by the last part of its path.
func (fs *files) openPath(path string) (target.File, error) {
	s := fs.s
	name := baseName(path)
	i := slices.IndexFunc(s.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
	}
	return opened{&s.Files[i], i, &fs.left}, nil
}

// opened is a saved file that has been opened.
type opened struct {
	*File
	index int
	left  *atomic.Int64 // bytes that may still be read; nil: any number
}

// ReadAt implements target.File. What was not saved is zero.
func (f opened) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s at %d: %w", f.File.Name, off, fs.ErrInvalid)
	}
	n := int(min(int64(len(p)), max(f.Size-off, 0)))
	if f.left != nil && f.left.Add(-int64(n)) < 0 {
		return 0, fmt.Errorf("read %s: more than %d MB are read of the snapshot's files: %w", f.File.Name, maxRead>>20, ErrFormat)
	}
	fill(p[:n], uint64(off), f.Pieces)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f opened) Close() error               { return nil }
func (f opened) Name() string               { return f.File.Name }
func (f opened) Stat() (fs.FileInfo, error) { return info{f}, nil }

// info describes a saved file. Its time tells it from the other files of the snapshot.
type info struct{ f opened }

func (i info) Name() string       { return i.f.File.Name }
func (i info) Size() int64        { return i.f.Size }
func (i info) Mode() fs.FileMode  { return 0o444 }
func (i info) ModTime() time.Time { return time.Unix(0, int64(i.f.index)+1) }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return nil }
