package hotspot

import (
	"path"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/target"
)

// Finder looks for Java VMs in many processes. It remembers which files hold none, so
// that a file is looked into once and not for every process that maps it. It belongs to
// one goroutine.
type Finder struct {
	without map[fileID]time.Time // files without a VM, and when they were looked into
	now     func() time.Time
	alike   alike
}

// fileID identifies a mapped file without opening it.
type fileID struct {
	dev, inode uint64
	path       string
}

const (
	// trustWithout is how long a file that held no VM is taken to be the same. Its
	// number and path may be another file's later.
	trustWithout = 30 * time.Second
	// maxWithout bounds the files that are remembered.
	maxWithout = 1 << 13
)

// NewFinder makes one that knows no file.
func NewFinder() *Finder { return &Finder{without: map[fileID]time.Time{}, now: time.Now} }

// Open is like the function Open.
func (f *Finder) Open(p *target.Process) (*VM, error) { return openIn(p, f) }

// Without reports whether it is known that no VM lies behind the mapping. It looks at
// nothing but the mapping.
func (f *Finder) Without(m target.Mapping) bool {
	if !m.FileBacked() {
		return true
	}
	if f == nil || likelyVM(m) {
		return false
	}
	at, ok := f.without[fileID{m.Dev, m.Inode, m.Path}]
	return ok && f.now().Sub(at) < trustWithout
}

// note remembers that the mapped file holds no VM.
func (f *Finder) note(m target.Mapping) {
	if f == nil || likelyVM(m) {
		return
	}
	if len(f.without) >= maxWithout {
		clear(f.without)
	}
	f.without[fileID{m.Dev, m.Inode, m.Path}] = f.now()
}

// likelyVM reports whether the name of a mapped file is that of a Java VM.
func likelyVM(m target.Mapping) bool {
	return strings.Contains(strings.ToLower(path.Base(m.Path)), "jvm")
}
