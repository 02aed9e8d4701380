package target

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// numberOf converts a device number of stat to that of /proc/PID/maps and Mapping.
func numberOf(dev uint64) uint64 {
	return uint64(unix.Major(dev))<<20 | uint64(unix.Minor(dev))
}

// seen caches the results of mappedAs, by what stat returns.
var seen struct {
	sync.Mutex
	files map[[2]uint64][2]uint64
}

// maxSeen bounds the cache.
const maxSeen = 1 << 12

// mappedAs returns the device and inode that the kernel shows for a mapping of an open file. Some
// file systems (btrfs, overlayfs) report another device in stat, so candid maps the file and reads
// its own maps; 0 and 0 if that failed.
func mappedAs(fd int, st *unix.Stat_t) (dev, inode uint64) {
	id := [2]uint64{uint64(st.Dev), st.Ino}
	seen.Lock()
	defer seen.Unlock()
	if as, ok := seen.files[id]; ok {
		return as[0], as[1]
	}
	at, err := unix.MmapPtr(fd, 0, nil, pageSize, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return 0, 0
	}
	defer unix.MunmapPtr(at, pageSize)
	p, err := Open(unix.Getpid())
	if err != nil {
		return 0, 0
	}
	defer p.Close()
	maps, err := p.Mappings()
	if err != nil {
		return 0, 0
	}
	for _, m := range maps {
		if m.Contains(uint64(uintptr(unsafe.Pointer(at)))) {
			dev, inode = m.Dev, m.Inode
		}
	}
	if seen.files == nil || len(seen.files) >= maxSeen {
		seen.files = map[[2]uint64][2]uint64{}
	}
	seen.files[id] = [2]uint64{dev, inode}
	return dev, inode
}
