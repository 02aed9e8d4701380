package target

import (
	"cmp"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/winsys"
)

// Mappings reads the process's committed regions, sorted by address. Those of an image are its
// sections, and their Offset is that of the section in the file, as for a file that is mapped on
// other systems. For a process that has ended it returns the mappings in its Space, if
// it has one.
//
// The last answer is returned again for as long as reading it took: in Wine that may be a second.
func (p *Process) Mappings() ([]Mapping, error) {
	p.sys.mu.Lock()
	if time.Now().Before(p.sys.fresh) {
		defer p.sys.mu.Unlock()
		return slices.Clone(p.sys.maps), nil
	}
	p.sys.mu.Unlock()
	begin := time.Now()
	out, err := p.mappings()
	if took := time.Since(begin); err == nil {
		p.sys.mu.Lock()
		p.sys.maps, p.sys.fresh = slices.Clone(out), time.Now().Add(took)
		p.sys.mu.Unlock()
	}
	return out, err
}

func (p *Process) mappings() ([]Mapping, error) {
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
	// The kernel's word: the loader's list is the process's own, which may write any path there.
	paths := map[uint64]string{}
	var out []Mapping
	for _, info := range p.regions(h) {
		base := uint64(info.AllocationBase)
		m := Mapping{Start: uint64(info.BaseAddress), End: uint64(info.BaseAddress + info.RegionSize), Perm: permOf(info.Protect)}
		m.Offset = m.Start - base
		if info.Type != memPrivate {
			path, known := paths[base]
			if !known {
				path = winsys.MappedFile(h, base)
				paths[base] = path
			}
			m.Path = path
			m.Dev, m.Inode = p.fileID(path)
			if info.Type == memImage && m.Start == base {
				if im := p.imageAt(base); im != nil {
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
	return out, nil
}

// silence is how long a process is not asked again that did not answer.
const silence = 10 * time.Second

// regions returns the process's regions. If the system does not answer, they are those of the images
// in the loader's list, all of whose sections are taken for code.
func (p *Process) regions(h windows.Handle) []windows.MemoryBasicInformation {
	p.sys.mu.Lock()
	silent := time.Now().Before(p.sys.silent)
	p.sys.mu.Unlock()
	if !silent {
		all, err := winsys.Regions(h, maxMappings, p.behindImage)
		if !errors.Is(err, winsys.ErrNoAnswer) {
			return all
		}
		p.sys.mu.Lock()
		p.sys.silent = time.Now().Add(silence)
		p.sys.mu.Unlock()
	}
	var out []windows.MemoryBasicInformation
	for _, l := range winsys.LoadedImages(h) {
		out = append(out, windows.MemoryBasicInformation{
			BaseAddress: uintptr(l.Base), AllocationBase: uintptr(l.Base), RegionSize: uintptr(l.Size), State: windows.MEM_COMMIT,
			Protect: windows.PAGE_EXECUTE_READ, Type: memImage,
		})
	}
	slices.SortFunc(out, func(a, b windows.MemoryBasicInformation) int { return cmp.Compare(a.BaseAddress, b.BaseAddress) })
	return out
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

// fileID returns the identity of a mapped file, 0 and 0 if it cannot be opened.
func (p *Process) fileID(path string) (dev, inode uint64) {
	if !wholePath(path) {
		return 0, 0
	}
	p.sys.mu.Lock()
	id, ok := p.sys.files[path]
	p.sys.mu.Unlock()
	if ok {
		return id[0], id[1]
	}
	if f, err := os.Open(path); err == nil {
		id[0], id[1] = FileID(f)
		f.Close()
	}
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	if p.sys.files == nil || len(p.sys.files) > maxSpace {
		p.sys.files = map[string][2]uint64{}
	}
	p.sys.files[path] = id
	return id[0], id[1]
}

// image is the layout of an image of the PE format in a process.
type image struct {
	entry    uint64 // RVA where it begins
	size     uint64 // of all of it in memory
	sections []section
}

type section struct {
	rva, size, offset uint64
	flags             uint32 // IMAGE_SCN_*
}

// imageAt reads the headers of an image from the process; nil if they are none.
func (p *Process) imageAt(base uint64) *image {
	p.sys.mu.Lock()
	im, ok := p.sys.images[base]
	p.sys.mu.Unlock()
	if ok {
		return im
	}
	im = readImage(p.mem, base)
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	if p.sys.images == nil || len(p.sys.images) > maxSpace {
		p.sys.images = map[uint64]*image{}
	}
	p.sys.images[base] = im
	return im
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

// behindImage returns where an image ends that begins with a region: its headers tell the rest.
func (p *Process) behindImage(info windows.MemoryBasicInformation) uint64 {
	if info.Type != memImage || info.BaseAddress != info.AllocationBase {
		return 0
	}
	if im := p.imageAt(uint64(info.BaseAddress)); im != nil {
		return uint64(info.BaseAddress) + im.size
	}
	return 0
}

func (m Mapping) part(start, end, offset uint64) Mapping {
	m.Start, m.End, m.Offset = start, end, offset
	return m
}
