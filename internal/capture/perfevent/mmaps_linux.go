package perfevent

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// Mmaps reports executable mappings, and processes that execute another program, through an event
// per CPU that counts nothing. The kernel cannot filter these by process, but they are rare.
type Mmaps struct {
	fds     []int
	rings   []*Ring
	rec     Record
	paths   paths
	scratch [1 << 16]byte
}

// mmapsRing is the size in bytes of a ring, room for a few hundred mappings between two reads; the
// reader is woken when it is half full.
const mmapsRing = 64 << 10

// OpenMmaps opens the events, which listen from then on.
func OpenMmaps(cpus []int) (*Mmaps, error) {
	m := &Mmaps{}
	for _, c := range cpus {
		fd, err := Open(Attr{Quiet: true, OnlyMmaps: true, Wakeup: mmapsRing / 2}, -1, c)
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
		if err := Enable(fd); err != nil {
			m.Close()
			return nil, fmt.Errorf("listen for mappings: %w", err)
		}
	}
	return m, nil
}

// WakeBy makes a Waiter wake when much is waiting.
func (m *Mmaps) WakeBy(w *Waiter) error {
	for _, fd := range m.fds {
		if err := w.Add(fd); err != nil {
			return err
		}
	}
	return nil
}

// Read appends a notice for each mapping and each Exec, up to the given time, of a process for
// which wanted returns true. Later records wait for the next Read.
func (m *Mmaps) Read(to []capture.ProcessEvent, until uint64, wanted func(pid uint32) bool) []capture.ProcessEvent {
	for _, r := range m.rings {
		r.Begin()
		for s, ok := r.Next(); ok; s, ok = r.Next() {
			if r.Time(s) > until {
				r.Back(s)
				break
			}
			if m.rec.Type = 0; (Layout{}).Parse(r.Bytes(s, &m.scratch), &m.rec) != nil {
				continue
			}
			n := capture.ProcessEvent{Time: m.rec.Time, PID: m.rec.PID, TID: m.rec.TID}
			switch {
			case m.rec.Type == RecordLost:
				to = append(to, capture.ProcessEvent{Kind: capture.Mmap, Time: m.rec.Time})
				continue
			case m.rec.PID == 0 || !wanted(m.rec.PID):
				// 0 stands for processes that are not visible in candid's pid namespace.
				continue
			case m.rec.Type == RecordMmap || m.rec.Type == RecordMmap2:
				n.Kind, n.Mapping = capture.Mmap, m.paths.mapping(&m.rec)
			case m.rec.Type == RecordComm && m.rec.Exec:
				n.Kind, n.Comm = capture.Exec, string(m.rec.Comm)
			default:
				continue
			}
			to = append(to, n)
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
