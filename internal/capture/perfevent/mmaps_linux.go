package perfevent

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// Mmaps hears of executable mappings through an event per CPU that counts
// nothing. The kernel cannot filter these by process, but they are rare; the
// reader is never woken for them.
type Mmaps struct {
	fds     []int
	rings   []*Ring
	rec     Record
	scratch [1 << 16]byte
}

// mmapsRing is room for a few hundred mappings between two looks, bytes.
const mmapsRing = 64 << 10

// OpenMmaps opens the events, disabled.
func OpenMmaps(cpus []int) (*Mmaps, error) {
	m := &Mmaps{}
	for _, c := range cpus {
		fd, err := Open(Attr{Quiet: true, OnlyMmaps: true, Wakeup: 1 << 30}, -1, c)
		if err != nil {
			m.Close()
			return nil, err
		}
		m.fds = append(m.fds, fd)
		r, err := MapRing(fd, mmapsRing)
		if err != nil {
			m.Close()
			return nil, err
		}
		m.rings = append(m.rings, r)
	}
	return m, nil
}

// Start lets the events run.
func (m *Mmaps) Start() error {
	for _, fd := range m.fds {
		if err := Enable(fd); err != nil {
			return fmt.Errorf("start listening for mappings: %w", err)
		}
	}
	return nil
}

// Read appends a notice for each mapping of a process that wanted agrees to,
// one for several in a row.
func (m *Mmaps) Read(to []capture.Notice, wanted func(pid uint32) bool) []capture.Notice {
	for _, r := range m.rings {
		r.Begin()
		last := uint32(0)
		for s, ok := r.Next(); ok; s, ok = r.Next() {
			if m.rec.Type = 0; (Layout{}).Parse(r.Bytes(s, &m.scratch), &m.rec) != nil {
				continue
			}
			if m.rec.Type != RecordMmap && m.rec.Type != RecordMmap2 || m.rec.PID == last || !wanted(m.rec.PID) {
				continue
			}
			last = m.rec.PID
			to = append(to, capture.Notice{Kind: capture.Mmap, Time: m.rec.Time, PID: m.rec.PID, TID: m.rec.TID})
		}
		r.Release()
	}
	return to
}

// Close closes the events.
func (m *Mmaps) Close() {
	if m == nil {
		return
	}
	for _, r := range m.rings {
		_ = r.Close()
	}
	for _, fd := range m.fds {
		_ = unix.Close(fd)
	}
	m.rings, m.fds = nil, nil
}
