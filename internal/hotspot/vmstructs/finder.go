package vmstructs

import (
	"path"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/target"
)

// Finder looks for Java VMs in many processes. It remembers which files hold none, so that a file
// is examined once and not for every process that maps it. It is used from one goroutine.
type Finder struct {
	without map[fileid.Named]time.Time // files without a VM, and when they were examined
	now     func() time.Time
	alike   alike
}

const (
	// trustWithout is how long a file that held no VM is taken to be the same file. Its inode
	// number and path may later be another file's.
	trustWithout = 30 * time.Second
	// maxWithout bounds the files that are remembered.
	maxWithout = 1 << 13
)

// NewFinder returns a Finder that knows no file.
func NewFinder() *Finder { return &Finder{without: map[fileid.Named]time.Time{}, now: time.Now} }

// Without reports whether the file behind the mapping is known to hold no VM. It looks only at the
// mapping.
func (f *Finder) Without(m target.Mapping) bool {
	if !m.FileBacked() {
		return true
	}
	if f == nil || likelyVM(m) {
		return false
	}
	// On Windows the VM is jvm.dll in every release; .NET programs map hundreds of other .dll files
	// while they run.
	if strings.EqualFold(path.Ext(m.Path), ".dll") {
		return true
	}
	at, ok := f.without[m.File()]
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
	f.without[m.File()] = f.now()
}

// likelyVM reports whether the name of a mapped file is that of a Java VM.
func likelyVM(m target.Mapping) bool {
	return strings.Contains(strings.ToLower(target.BaseName(m.Path)), "jvm")
}
