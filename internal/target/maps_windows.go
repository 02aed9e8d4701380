package target

import (
	"cmp"
	"encoding/binary"
	"os"
	"slices"
	"sort"
	"time"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/winsys"
)

// Mappings reads the process's committed regions, sorted by address. Those of an image are its
// sections, and their Offset is that of the section in the file, as for a file that is mapped on
// other systems. For a process that has ended it returns the mappings in its Space, if
// it has one.
//
// Images are those of the loader's list, which takes a few reads, and what else the system's list of
// regions has. That one may be older, or not there: see regionReader. If neither seems to have
// changed, the last answer is returned again.
func (p *Process) Mappings() ([]Mapping, error) {
	h, err := p.handle()
	if err == nil && hasEnded(h) {
		err = &AccessError{PID: p.PID, Reason: ReasonZombie, UID: -1}
	}
	if err != nil {
		if known, ok := p.remembered(); ok {
			return known, nil
		}
		return nil, err
	}
	regions, version := p.regions(h)
	p.sys.mu.Lock()
	s := &p.sys
	if !s.list.Changed(h) && s.version == version && len(s.maps) > 0 && time.Since(s.listed) < listAgain {
		defer s.mu.Unlock()
		return slices.Clone(s.maps), nil
	}
	p.sys.mu.Unlock()
	out := p.loaded(h)
	listed := out // by address
	for _, r := range regions {
		base := uint64(r.info.AllocationBase)
		m := Mapping{Start: uint64(r.info.BaseAddress), End: uint64(r.info.BaseAddress + r.info.RegionSize), Perm: permOf(r.info.Protect)}
		if within(listed, m.Start) {
			continue
		}
		m.Offset = m.Start - base
		if r.path != "" {
			m.Path = r.path
			id := p.fileID(m.Path)
			m.Dev, m.Inode = id.Dev, id.Inode
			if r.info.Type == memImage && m.Start == base {
				if im := p.imageAt(base, m.Path); im != nil {
					out = append(out, im.whole(m)...)
					continue
				}
			}
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, &AccessError{PID: p.PID, Reason: ReasonZombie, UID: -1}
	}
	slices.SortStableFunc(out, func(a, b Mapping) int { return cmp.Compare(a.Start, b.Start) })
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	s.maps, s.version, s.listed = slices.Clone(out), version, time.Now()
	return out, nil
}

// listAgain is how long the loader's list is taken to be the same if its ends are.
const listAgain = time.Second

// within reports whether an address lies in one of the mappings, or in a gap between two that are of
// the same image.
func within(maps []Mapping, addr uint64) bool {
	i := sort.Search(len(maps), func(i int) bool { return maps[i].End > addr })
	return i < len(maps) && (maps[i].Start <= addr || i > 0 && maps[i].Path == maps[i-1].Path && maps[i].Offset > maps[i-1].Offset)
}

// loaded returns the mappings of the images in the loader's list, by address.
func (p *Process) loaded(h windows.Handle) []Mapping {
	var out []Mapping
	for _, l := range winsys.LoadedImages(h) {
		im := p.listed(h, l)
		if im == nil || im.size != l.Size {
			continue // it is being loaded or unloaded, or the entry is made up
		}
		m := Mapping{Start: l.Base, End: l.Base + pageSize, Perm: PermRead, Path: im.path}
		id := p.fileID(im.path)
		m.Dev, m.Inode = id.Dev, id.Inode
		out = append(out, im.whole(m)...)
	}
	slices.SortStableFunc(out, func(a, b Mapping) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// listed returns the image of an entry of the loader's list; nil if there is none.
func (p *Process) listed(h windows.Handle, l winsys.Loaded) *image {
	p.sys.mu.Lock()
	im := p.sys.images[l.Base]
	p.sys.mu.Unlock()
	if im != nil && im.entryOf == l {
		return im
	}
	// The kernel's word for the path: the list is the process's own.
	path := winsys.MappedFile(h, l.Base)
	if path == "" {
		return nil
	}
	p.sys.mu.Lock()
	delete(p.sys.images, l.Base) // it was another image
	p.sys.mu.Unlock()
	if im = p.imageAt(l.Base, path); im != nil {
		p.sys.mu.Lock()
		defer p.sys.mu.Unlock()
		im.entryOf = l
	}
	return im
}

// Types of memory, MEM_* of winnt.h.
const (
	memPrivate = 0x20000
	memImage   = 0x1000000
)

// permOf converts PAGE_*. Memory that must not be touched (PAGE_GUARD, PAGE_NOACCESS) has none.
func permOf(protect uint32) Perm {
	const guard = 0x100
	if protect&guard != 0 {
		return 0
	}
	switch protect & 0xff {
	case windows.PAGE_READONLY:
		return PermRead
	case windows.PAGE_READWRITE, windows.PAGE_WRITECOPY:
		return PermRead | PermWrite
	case windows.PAGE_EXECUTE:
		return PermExec
	case windows.PAGE_EXECUTE_READ:
		return PermRead | PermExec
	case windows.PAGE_EXECUTE_READWRITE, windows.PAGE_EXECUTE_WRITECOPY:
		return PermRead | PermWrite | PermExec
	}
	return 0
}

// fileID returns the identity of a mapped file, the zero value if it cannot be opened.
func (p *Process) fileID(path string) fileid.ID {
	if !wholePath(path) {
		return fileid.ID{}
	}
	p.sys.mu.Lock()
	id, ok := p.sys.files[path]
	p.sys.mu.Unlock()
	if ok {
		return id
	}
	if f, err := os.Open(path); err == nil {
		if c, err := fileid.Of(f); err == nil {
			id = c.ID
		}
		f.Close()
	}
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	if p.sys.files == nil || len(p.sys.files) > maxSpace {
		p.sys.files = map[string]fileid.ID{}
	}
	p.sys.files[path] = id
	return id
}

// image is the layout of an image of the PE format in a process.
type image struct {
	path     string        // of its file
	entryOf  winsys.Loaded // as the loader has it; zero: it is not in the list
	entry    uint64        // RVA where it begins
	size     uint64        // of all of it in memory
	sections []section
}

type section struct {
	rva, size, offset uint64
	flags             uint32 // IMAGE_SCN_*
}

// imageAt reads the headers of the image of a file that is mapped at base in the process; nil if
// they are none.
func (p *Process) imageAt(base uint64, path string) *image {
	p.sys.mu.Lock()
	im, ok := p.sys.images[base]
	p.sys.mu.Unlock()
	if ok && im.path == path {
		return im
	}
	if im = readImage(p.mem, base); im == nil {
		return nil // it may be one in a moment
	}
	im.path = path
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	if p.sys.images == nil || len(p.sys.images) > maxSpace {
		p.sys.images = map[uint64]*image{}
	}
	p.sys.images[base] = im
	return im
}

// imageOf returns the image that an address lies in, if it has been read.
func (p *Process) imageOf(addr uint64) (base uint64, im *image) {
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	for base, im := range p.sys.images {
		if addr-base < im.size {
			return base, im
		}
	}
	return 0, nil
}

// readImage reads an image's headers, which the loader maps as one page or more.
func readImage(r Reader, base uint64) *image {
	const most = 96 // sections that Windows loads
	var b [4096]byte
	le := binary.LittleEndian
	if r.ReadAt(b[:], base) != nil || string(b[:2]) != "MZ" {
		return nil
	}
	at := le.Uint32(b[0x3c:])
	if at > uint32(len(b))-0x108 || string(b[at:at+4]) != "PE\x00\x00" {
		return nil
	}
	h := b[at:]
	n, optional := int(le.Uint16(h[6:])), int(le.Uint16(h[20:]))
	im := &image{entry: uint64(le.Uint32(h[24+16:])), size: uint64(le.Uint32(h[24+56:]))}
	for i := range min(n, most) {
		off := 24 + optional + 40*i
		if off+40 > len(h) {
			break
		}
		s := h[off:]
		im.sections = append(im.sections, section{uint64(le.Uint32(s[12:])), uint64(max(le.Uint32(s[8:]), le.Uint32(s[16:]))), uint64(le.Uint32(s[20:])), le.Uint32(s[36:])})
	}
	return im
}

// whole returns the mappings of an image, of which m is the first region: its headers, and its
// sections with the permissions that it asks for.
func (im *image) whole(m Mapping) []Mapping {
	const exec, read, write = 0x20000000, 0x40000000, 0x80000000 // IMAGE_SCN_MEM_*
	base := m.Start
	head := m.part(base, max(m.End, base+pageSize), 0)
	if len(im.sections) > 0 {
		head.End = min(head.End, base+im.sections[0].rva)
	}
	out := []Mapping{head}
	for _, s := range im.sections {
		from, to := base+s.rva, base+min((s.rva+s.size+pageMask)&^uint64(pageMask), im.size)
		if from < out[len(out)-1].End || from >= to {
			continue // they are in order
		}
		x := m.part(from, to, s.offset)
		x.Perm = 0
		for bit, perm := range map[uint32]Perm{exec: PermExec, read: PermRead, write: PermWrite} {
			if s.flags&bit != 0 {
				x.Perm |= perm
			}
		}
		out = append(out, x)
	}
	return out
}

func (m Mapping) part(start, end, offset uint64) Mapping {
	m.Start, m.End, m.Offset = start, end, offset
	return m
}
