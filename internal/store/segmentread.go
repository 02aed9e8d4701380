package store

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/candid-profiler/candid/internal/memlimit"
)

// segment visits the blocks of a segment.
func (r *Reader) segment(at place, from, to time.Time, service string, m *memlimit.Meter, visit func(s *opened, k *block) error) error {
	// Samples are read before the tables: whatever they refer to is in the tables then.
	f, err := os.Open(at.path(r.dir, fileOfSamples))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || fi.Size() == 0 {
		return err
	}
	size := fi.Size()
	s := &opened{place: at}
	if s.tables, err = r.tables(at, m); err != nil {
		return err
	}
	// Blocks are unpacked while the ones before are visited.
	const ahead = 4
	ready, used, stop := make(chan *block, ahead), make(chan unpacked, ahead+2), make(chan struct{})
	wanted := s.services(service)
	var scanned error
	go func() {
		defer close(ready)
		_, scanned = scan(f, kindSamples, 0, func(h header, offset int64, body []byte) error {
			if offset >= size {
				return errStop
			}
			if h.to <= from.UnixNano() || h.from >= to.UnixNano() {
				return nil
			}
			m.Saw(int(h.raw))
			var u unpacked
			select {
			case u = <-used:
			default:
			}
			u, err := h.unpackParts(body, u, wanted)
			if err != nil {
				return err
			}
			k, err := parseBlock(h, u)
			if err != nil {
				return err
			}
			k.offset = offset
			select {
			case ready <- k:
				return nil
			case <-stop:
				return errStop
			}
		}, func(begin, end int64, h *header, why error) {
			r.report(at, fileOfSamples, begin, end, size, h, why)
		})
	}()
	var failed error
	for k := range ready {
		if failed != nil {
			continue
		}
		if err := visit(s, k); errors.Is(err, errCut) {
			r.report(at, fileOfSamples, k.offset, k.offset+headerSize+int64(k.length), size, &k.header, err)
		} else if failed = errors.Join(err, m.Check()); failed != nil {
			close(stop)
			continue
		}
		select {
		case used <- k.unpacked:
		default:
		}
	}
	return errors.Join(failed, scanned)
}

// tables reads the tables of a segment.
func (r *Reader) tables(at place, m *memlimit.Meter) (*tables, error) {
	t := newTables()
	var buf []byte
	for i := range fileOfSamples {
		f, err := os.Open(at.path(r.dir, i))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		fi, err := f.Stat()
		if err == nil {
			_, err = scan(f, fileKinds[i], 0, func(h header, _ int64, body []byte) (err error) {
				m.Saw(int(h.raw))
				if buf, err = h.unpack(body, buf); err != nil {
					return err
				}
				if err := m.Check(); err != nil {
					return err
				}
				return t.add(i, h.version, buf, m)
			}, func(begin, end int64, h *header, why error) { r.report(at, i, begin, end, fi.Size(), h, why) })
		}
		_ = f.Close()
		if err = errors.Join(err, m.Err()); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// report notes a damaged range of a file. At its end may be a block that is being written.
func (r *Reader) report(at place, file int, begin, end, size int64, h *header, why error) {
	if end >= size && (h == nil || end < begin+headerSize+int64(h.length)) {
		return
	}
	lost := ""
	switch {
	case file != fileOfSamples:
		lost = "what it named is shown as lost"
	case h != nil:
		const form = "2006-01-02 15:04:05"
		lost = fmt.Sprintf("the samples from %s to %s are lost", time.Unix(0, h.from).Format(form), time.Unix(0, h.to).Format(form))
	default:
		lost = "the samples in it are lost"
	}
	r.damaged(fmt.Sprintf("%s: %d bytes at %d are damaged (%v): %s", at.path(r.dir, file), end-begin, begin, why, lost))
}
