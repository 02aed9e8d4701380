package target

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/vmread"
)

// nowhereMapped is an address of the kernel's half, where no program has memory, not even one that
// may map address 0.
const nowhereMapped = ^uintptr(pageMask)

// Unread returns what of the process's memory and files is not read because a read does not return,
// one line each.
func (p *Process) Unread() []string {
	if p.sys.access == nil {
		return nil
	}
	return p.sys.access.avoid.Notes()
}

// EndReads makes reads of the process's memory that do not return be given up when ends says so.
func (p *Process) EndReads(ends *vmread.Ends) {
	if p.sys.access != nil {
		p.sys.access.stuck.End(ends)
	}
}

// givenUp finds out which of the ranges could not be read, after a call for them was given up, and
// avoids its mapping from then on.
func (a *vmAccess) givenUp(reqs []Read) {
	addr := reqs[0].Addr
	for i := range reqs {
		if at, ok := a.absent(reqs[i].Addr, len(reqs[i].Buf)); ok && !reqs[i].OK && !a.avoid.Has(reqs[i].Addr, len(reqs[i].Buf)) {
			addr = at
			break
		}
	}
	span := vmread.Span{Start: addr &^ pageMask, End: addr&^pageMask + pageSize}
	what := "memory"
	if maps, err := a.p.mappings(); err == nil {
		for _, m := range maps {
			if m.Contains(addr) {
				span = vmread.Span{Start: m.Start, End: m.End}
				if what = "memory without a file"; m.Path != "" {
					what = m.Path
				}
			}
		}
	}
	a.avoid.GiveUp(span, &a.stuck)
	a.avoid.Note(fmt.Sprintf("its memory at %#x-%#x (%s) cannot be read: a read does not return, because a page has to come from another program (userfaultfd, FUSE) or a server; stacks there are not shown", span.Start, span.End, what))
}

// absent returns the first page of a range that the process has no memory for at present.
func (a *vmAccess) absent(addr uint64, n int) (uint64, bool) {
	fd, err := a.p.openat(a.p.at("pagemap"), unix.O_RDONLY)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	var entries [512 * 8]byte
	for page := addr >> pageShift; page <= (addr+uint64(max(n, 1))-1)>>pageShift; {
		want := min(uint64(len(entries)/8), (addr+uint64(max(n, 1))-1)>>pageShift-page+1)
		got, err := unix.Pread(fd, entries[:want*8], int64(page*8))
		if err != nil || got < 8 {
			return 0, false
		}
		for i := range got / 8 {
			// Bits 63 and 62: present, swapped out (Documentation/admin-guide/mm/pagemap.rst).
			if binary.LittleEndian.Uint64(entries[i*8:])>>62 == 0 {
				return max((page+uint64(i))<<pageShift, addr), true
			}
		}
		page += uint64(got / 8)
	}
	return 0, false
}

// Served reports whether a mapping's pages come from a file that may have to be asked for, and not
// from the kernel's own memory: while a thread is stopped such memory is not read, whatever it is.
func (p *Process) Served(m Mapping) bool {
	return m.Inode != 0 && m.Dev != sharedMemory() && !slices.Contains(inMemory, p.fileSystem(m.Dev))
}

// inMemory are the file systems whose files are in memory.
var inMemory = []string{"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"}

// sharedMemory returns the device of shared memory and memfds, which is not mounted anywhere.
var sharedMemory = sync.OnceValue(func() uint64 {
	fd, err := unix.MemfdCreate("candid", unix.MFD_CLOEXEC)
	if err != nil {
		return ^uint64(0)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return ^uint64(0)
	}
	return numberOf(st.Dev)
})

// fileSystem returns the type of the mounted file system with a device number, "" if it is not
// known: it may have been unmounted, or be mounted elsewhere.
func (p *Process) fileSystem(dev uint64) string {
	if dev>>20 != 0 {
		return "disk" // only file systems without a disk have the major number 0
	}
	mounts, err := p.readFile("mountinfo", 4<<20)
	if err != nil {
		return ""
	}
	want := []byte("0:" + strconv.FormatUint(dev, 10))
	for line := range bytes.Lines(mounts) {
		f := bytes.Fields(line)
		if len(f) < 7 || !bytes.Equal(f[2], want) {
			continue
		}
		if i := slices.IndexFunc(f, func(b []byte) bool { return string(b) == "-" }); i >= 0 && i+1 < len(f) {
			return string(f[i+1])
		}
	}
	return ""
}

// fromProgram reports whether a program provides the files of a file system. One that is mounted
// nowhere in sight may be such a one.
func fromProgram(kind string) bool {
	return kind == "" || kind == "fuse" || strings.HasPrefix(kind, "fuse.")
}

// avoidUnanswered looks for mappings of files that a program provides, and avoids those whose
// program does not answer.
func (p *Process) avoidUnanswered(maps []Mapping) {
	a := p.sys.access
	if a == nil {
		return
	}
	var served []vmread.Span
	kinds := map[uint64]string{}
	shared := sharedMemory()
	for _, m := range maps {
		if m.Inode == 0 || m.Dev>>20 != 0 || m.Dev == shared {
			continue
		}
		kind, known := kinds[m.Dev]
		if !known {
			kind = p.fileSystem(m.Dev)
			kinds[m.Dev] = kind
		}
		if fromProgram(kind) && !m.notAFile() && !p.answers(a, m, kind) {
			served = append(served, vmread.Span{Start: m.Start, End: m.End})
		}
	}
	a.avoid.Serve(served)
}

// notAFile reports whether the kernel itself is behind a mapping with an inode.
func (m Mapping) notAFile() bool { return !m.FileBacked() && !m.Memfd() }

// answers asks the file system of a mapping's file once, by a process that is left behind if it does
// not answer.
func (p *Process) answers(a *vmAccess, m Mapping, kind string) bool {
	a.asking.Lock()
	defer a.asking.Unlock()
	yes, asked := a.answered[m.Dev]
	if asked {
		return yes
	}
	path := "/proc/" + strconv.Itoa(p.PID) + "/root"
	yes = vmread.Answers(vmread.Question{PID: a.tid, Addr: m.Start, Root: path, Path: m.Path})
	if a.answered == nil {
		a.answered = map[uint64]bool{}
	}
	if a.answered[m.Dev] = yes; !yes {
		a.silent.Store(true)
		a.avoid.Note(fmt.Sprintf("files of the file system of %s (%s) are not read: it does not answer; code there has no names, and memory there is not shown", m.Path, cmp.Or(kind, "of a type that is not known")))
	}
	return yes
}

// mayOpen reports whether files of a device may be opened: nobody has asked its file system in vain.
func (p *Process) mayOpen(dev uint64) bool {
	a := p.sys.access
	if a == nil || !a.silent.Load() {
		return true
	}
	a.asking.Lock()
	defer a.asking.Unlock()
	yes, asked := a.answered[dev]
	return yes || !asked
}
