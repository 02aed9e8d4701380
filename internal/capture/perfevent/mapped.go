package perfevent

import (
	"strings"

	"github.com/candid-profiler/candid/internal/target"
)

// Arguments of mmap (asm-generic/mman-common.h).
const (
	protRead  = 1
	protWrite = 2
	protExec  = 4
	mapShared = 1
	mapKind   = 0xf // MAP_TYPE
)

// noName are the kernel's names for memory without a file.
var noName = map[string]bool{"//anon": true, "//enomem": true, "//toolong": true}

// maxPaths bounds how many paths are interned.
const maxPaths = 4096

// paths interns the paths of mapped files.
type paths map[string]string

// mapping returns what a record of a mapping contains, in the form of /proc/PID/maps.
func (p *paths) mapping(r *Record) target.Mapping {
	m := target.Mapping{
		Start: r.Map.Addr, End: r.Map.Addr + r.Map.Len, Offset: r.Map.Offset,
		Dev: uint64(r.Map.Major)<<20 | uint64(r.Map.Minor), Inode: r.Map.Inode, Made: r.Time,
	}
	if r.Type != RecordMmap2 || m.End <= m.Start {
		return target.Mapping{} // nothing says which file it is
	}
	for _, b := range [...]struct {
		prot uint32
		perm target.Perm
	}{{protRead, target.PermRead}, {protWrite, target.PermWrite}, {protExec, target.PermExec}} {
		if r.Map.Prot&b.prot != 0 {
			m.Perm |= b.perm
		}
	}
	if kind := r.Map.Flags & mapKind; kind == mapShared || kind == mapShared|2 { // MAP_SHARED_VALIDATE is 3
		m.Perm |= target.PermShared
	}
	path, ok := (*p)[string(r.Path)]
	if !ok {
		if *p == nil || len(*p) >= maxPaths {
			*p = paths{}
		}
		path = string(r.Path)
		if noName[path] {
			path = ""
		}
		(*p)[string(r.Path)] = path
	}
	m.Path = path
	if name, gone := strings.CutSuffix(path, " (deleted)"); gone {
		m.Path, m.Deleted = name, true
	}
	return m
}
