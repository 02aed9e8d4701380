package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
)

// maxMemory bounds the bytes of memory and of files that one recording keeps. With what describes them
// they fit into maxUnpacked.
const maxMemory = 48 << 20

// ErrTooMuch is wrapped by the error of Record if walking a stack read too much.
var ErrTooMuch = fmt.Errorf("walking it read more than %d MB", maxMemory>>20)

// Record walks a capture of a thread of t with a new walker that knows nothing yet, and keeps all
// that was read. The process goes on; what is read is what it holds by then. c may be used again
// afterwards. The result is large: Reduce leaves out what does not matter.
//
// When ctx is done, nothing more is read, and its cause is returned. Other errors are those of
// target.Process.Mappings, one that wraps ErrTooMuch, and one that says that candid has a fault.
func Record(ctx context.Context, t *target.Process, c *capture.Snapshot) (*Snapshot, error) {
	maps, err := t.Mappings()
	if err != nil {
		return nil, err
	}
	r := recorder{ctx: ctx, live: t, byFile: map[fileOf]uint64{}, memory: ranges{}}
	s := &Snapshot{OS: runtime.GOOS, Capture: clone(c), Comm: t.Comm(), Exe: r.path(t.Exe()), Mappings: r.rename(maps)}
	// Frames of the kernel have no names in snapshots, and where the kernel is may be secret.
	clear(s.Capture.Kernel)
	if s.Capture.Regs.Arch == 0 {
		s.Capture.Regs.Arch = t.Arch()
	}
	s.TIDs, _ = t.TIDs() // those of a process that has ended are not known
	saved := target.Saved{
		PID: t.PID, Comm: s.Comm, Exe: s.Exe, Arch: s.Capture.Regs.Arch, Mappings: s.Mappings,
		Memory: liveMemory{&r}, Open: r.open, OpenPath: r.openPath, TIDs: s.TIDs,
	}
	p := saved.Process()
	p.Memory().Trace(func(addr uint64, b []byte, ok bool) {
		if ok {
			r.keep(&r.memory, addr, b)
		}
	})
	defer func() {
		for _, f := range r.files {
			_ = f.of.Close()
		}
	}()
	s.Want, s.Title, s.places, err = run(p, &s.Capture)
	if why := r.stopped(); why != nil {
		err = why
	}
	if err != nil {
		return nil, fmt.Errorf("save a stack of %v: %w", t, err)
	}
	s.Memory, r.memory = r.memory.pieces(), nil
	for _, f := range r.files {
		s.Files = append(s.Files, File{Inode: f.inode, Name: f.name, BuildID: f.id, Size: f.size, Pieces: f.read.pieces()})
		f.read = nil
	}
	return s, nil
}

// clone returns a copy of a capture that holds no memory of the engine's.
func clone(c *capture.Snapshot) capture.Snapshot {
	out := *c
	out.Kernel, out.Stack, out.Other = slices.Clone(c.Kernel), bytes.Clone(c.Stack), bytes.Clone(c.Other)
	out.Regions = slices.Clone(c.Regions)
	for i := range out.Regions {
		out.Regions[i].Bytes = bytes.Clone(out.Regions[i].Bytes)
	}
	return out
}

// recorder keeps what is read of a process.
type recorder struct {
	ctx    context.Context
	live   *target.Process
	byFile map[fileOf]uint64 // numbers of the files, from 1
	first  []target.Mapping  // a mapping of each file
	mu     sync.Mutex        // guards what follows: symbols are read by several goroutines
	memory ranges
	files  []*recorded
	kept   int
	full   bool
}

type fileOf struct {
	dev, inode uint64
	path       string
}

// recorded is a file that was opened.
type recorded struct {
	of    target.File
	inode uint64
	name  string
	path  string // "" if it was opened by a mapping
	id    string
	size  int64
	read  ranges
}

// baseName returns the last part of a path of any system.
func baseName(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// path removes the directories of a path. It stays a path of the same system.
func (r *recorder) path(path string) string {
	switch {
	case strings.HasPrefix(path, "/memfd:"), strings.HasPrefix(path, "/dev/zero"), strings.HasPrefix(path, "/SYSV"):
		return path
	case strings.HasPrefix(path, "/"):
		return "/" + baseName(path)
	case strings.Contains(path, `\`):
		return `C:\` + baseName(path)
	}
	return path
}

// rename returns mappings whose files have other numbers, and paths without directories.
func (r *recorder) rename(maps []target.Mapping) []target.Mapping {
	out := slices.Clone(maps)
	for i := range out {
		m := &out[i]
		if m.Inode != 0 {
			k := fileOf{m.Dev, m.Inode, m.Path}
			n, ok := r.byFile[k]
			if !ok {
				r.first = append(r.first, *m)
				n = uint64(len(r.first))
				r.byFile[k] = n
			}
			m.Dev, m.Inode = savedDevice, n
		}
		m.Path, m.Made = r.path(m.Path), 0
	}
	return out
}

// open opens the file of a renamed mapping.
func (r *recorder) open(m target.Mapping) (target.File, error) {
	if m.Path == "[vdso]" {
		image := make([]byte, min(m.End-m.Start, 1<<20))
		if err := r.live.Memory().ReadAt(image, m.Start); err != nil {
			return nil, err
		}
		return r.add(&recorded{of: &inMemory{bytes.NewReader(image), m.Path}, name: m.Path}), nil
	}
	if m.Inode == 0 || m.Inode > uint64(len(r.first)) {
		return nil, &fs.PathError{Op: "open", Path: m.Path, Err: fs.ErrNotExist}
	}
	// The very mapping, because its address leads to the file.
	live := r.first[m.Inode-1]
	live.Start, live.End, live.Offset = m.Start, m.End, m.Offset
	f, err := r.live.OpenFile(live)
	if err != nil {
		return nil, err
	}
	return r.add(&recorded{of: f, inode: m.Inode, name: baseName(m.Path)}), nil
}

// openPath opens a file by its path, which may be that of a renamed mapping.
func (r *recorder) openPath(path string) (target.File, error) {
	for i := range r.first {
		if m := r.first[i]; r.path(m.Path) == path || m.Path == path {
			if f, err := r.live.OpenFile(m); err == nil {
				return r.add(&recorded{of: f, inode: uint64(i) + 1, name: baseName(path)}), nil
			}
		}
	}
	f, err := r.live.OpenPath(path)
	if err != nil {
		return nil, err
	}
	return r.add(&recorded{of: f, name: baseName(path), path: path}), nil
}

// add begins to keep what is read of a file. What is read of the same file when it is opened again
// belongs to the first.
func (r *recorder) add(f *recorded) target.File {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, known := range r.files {
		if known.inode == f.inode && known.name == f.name && known.path == f.path {
			_ = f.of.Close()
			return &reading{r, known, i}
		}
	}
	f.read = ranges{}
	if st, err := f.of.Stat(); err == nil {
		f.size = st.Size()
	}
	f.id, _ = symbol.BuildID(f.of, f.size)
	r.files = append(r.files, f)
	return &reading{r, f, len(r.files) - 1}
}

// stopped returns why nothing more is read, nil while it is.
func (r *recorder) stopped() error {
	r.mu.Lock()
	full := r.full
	r.mu.Unlock()
	if full {
		return ErrTooMuch
	}
	return context.Cause(r.ctx)
}

// liveMemory is the memory of the process that is being recorded.
type liveMemory struct{ r *recorder }

// ReadAt implements target.Reader.
func (m liveMemory) ReadAt(p []byte, addr uint64) error {
	if err := m.r.stopped(); err != nil {
		return fmt.Errorf("%w: %w", target.ErrMemory, err)
	}
	return m.r.live.Memory().ReadAt(p, addr)
}

// keep keeps bytes that were read.
func (r *recorder) keep(in *ranges, at uint64, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full {
		return
	}
	if r.kept += in.put(at, b); r.kept > maxMemory {
		r.full = true
	}
}

// reading is a file that is being read.
type reading struct {
	r     *recorder
	f     *recorded
	index int
}

// ReadAt implements target.File.
func (f *reading) ReadAt(p []byte, off int64) (int, error) {
	if err := f.r.stopped(); err != nil {
		return 0, err
	}
	n, err := f.f.of.ReadAt(p, off)
	if n > 0 {
		f.r.keep(&f.f.read, uint64(off), p[:n])
	}
	return n, err
}

// Close leaves the file open: Record closes it.
func (f *reading) Close() error { return nil }
func (f *reading) Name() string { return f.f.name }

// Stat describes the file as it will be described by the replay.
func (f *reading) Stat() (fs.FileInfo, error) {
	return info{opened{File: &File{Name: f.f.name, Size: f.f.size}, index: f.index}}, nil
}

// inMemory is a file that is none.
type inMemory struct {
	*bytes.Reader
	name string
}

func (f *inMemory) Close() error { return nil }
func (f *inMemory) Name() string { return f.name }
func (f *inMemory) Stat() (fs.FileInfo, error) {
	return info{opened{File: &File{Name: f.name, Size: f.Size()}}}, nil
}

// ranges are bytes by address, in words of 64 bytes of which some are known.
type ranges map[uint64]*line

const lineSize = 64

type line struct {
	b     [lineSize]byte
	known uint64 // a bit a byte
}

// put adds bytes and returns how many bytes more are held. Bytes that are known stay: the walk may have used them.
func (r *ranges) put(at uint64, b []byte) (more int) {
	for len(b) > 0 {
		l := (*r)[at/lineSize]
		if l == nil {
			l = &line{}
			(*r)[at/lineSize] = l
			more += lineSize
		}
		i := at % lineSize
		for ; i < lineSize && len(b) > 0; i++ {
			if l.known>>i&1 == 0 {
				l.b[i], l.known = b[0], l.known|1<<i
			}
			b, at = b[1:], at+1
		}
	}
	return more
}

// pieces returns what is known, in order.
func (r *ranges) pieces() (out []Piece) {
	at := make([]uint64, 0, len(*r))
	for a := range *r {
		at = append(at, a)
	}
	slices.Sort(at)
	for _, a := range at {
		l := (*r)[a]
		for i := uint64(0); i < lineSize; i++ {
			if l.known>>i&1 == 0 {
				continue
			}
			n := len(out)
			if n == 0 || out[n-1].At+uint64(len(out[n-1].Bytes)) != a*lineSize+i {
				out = append(out, Piece{At: a*lineSize + i})
				n++
			}
			out[n-1].Bytes = append(out[n-1].Bytes, l.b[i])
		}
	}
	return out
}
