package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/target"
)

// magic begins a snapshot's file. The last byte is the version.
const magic = "CDSNAP\x00\x01"

// Bounds of a file that is read.
const (
	MaxFile      = 64 << 20 // bytes, packed
	maxUnpacked  = 64 << 20 // bytes
	maxText      = 64 << 10
	maxEntries   = 1 << 20 // of all lists
	maxSnapshots = 256
)

// ErrFormat is wrapped by errors which say that something is not a snapshot, or is damaged.
var ErrFormat = errors.New("not a snapshot of candid, or damaged")

// Is reports whether a file that begins with b is a snapshot.
func Is(b []byte) bool { return bytes.HasPrefix(b, []byte(magic[:7])) }

// Encode returns a file of snapshots. Those of one process share most of their memory, and need
// little more than one. The error says that they are more than Decode reads.
func Encode(list ...*Snapshot) ([]byte, error) {
	w := writer{}
	w.length(len(list), 1)
	for _, s := range list {
		s.code(&w)
	}
	if len(w.b) > maxUnpacked || w.entries > maxEntries {
		return nil, fmt.Errorf("snapshots of %d MB in %d pieces: a file may hold %d MB in %d", len(w.b)>>20, w.entries, maxUnpacked>>20, maxEntries)
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.EncodeAll(w.b, []byte(magic)), nil
}

// Decode reads a file. The error wraps ErrFormat if it is not one, or has another version.
func Decode(file []byte) ([]*Snapshot, error) {
	switch {
	case !Is(file) || len(file) < len(magic):
		return nil, ErrFormat
	case file[7] != magic[7]:
		return nil, fmt.Errorf("version %d of snapshots, this candid reads version %d: %w", file[7], magic[7], ErrFormat)
	case len(file) > MaxFile:
		return nil, fmt.Errorf("%d bytes: %w", len(file), ErrFormat)
	}
	z, err := zstd.NewReader(bytes.NewReader(file[len(magic):]), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	defer z.Close()
	b, err := io.ReadAll(io.LimitReader(z, maxUnpacked+1))
	if err != nil || len(b) > maxUnpacked {
		return nil, fmt.Errorf("%w: unpack: %v", ErrFormat, err)
	}
	return decode(b)
}

// decode reads what was unpacked.
func decode(b []byte) ([]*Snapshot, error) {
	r := reader{b: b}
	out := make([]*Snapshot, min(r.length(0, 1), maxSnapshots))
	for i := range out {
		out[i] = &Snapshot{}
		out[i].code(&r)
	}
	if r.bad || len(r.b) > 0 {
		return nil, ErrFormat
	}
	return out, nil
}

// coder writes a value, or reads it, so that both have the same order.
type coder interface {
	number(v *uint64)
	text(v *string)
	bytes(v *[]byte)
	length(n, least int) int // of a list, each of whose entries takes at least so many bytes
	ok() bool
}

// num codes a number of any type. One that does not fit is not the same when it is read.
func num[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int64](c coder, v *T) {
	n := uint64(*v)
	c.number(&n)
	*v = T(n)
}

// list codes a list, each of whose entries takes at least so many bytes.
func list[T any](c coder, v *[]T, least int, each func(i int, e *T)) {
	n := c.length(len(*v), least)
	if *v == nil && n > 0 {
		*v = make([]T, n)
	}
	for i := 0; i < n && c.ok(); i++ {
		each(i, &(*v)[i])
	}
}

// code writes or reads everything.
func (s *Snapshot) code(c coder) {
	c.text(&s.Title)
	c.text(&s.Note)
	arch := s.Capture.Regs.Arch.String()
	c.text(&arch)
	for _, a := range []cpu.Arch{cpu.AMD64, cpu.ARM64} {
		if a.String() == arch {
			s.Capture.Regs.Arch = a
		}
	}
	c.text(&s.OS)
	codeCapture(c, &s.Capture)
	c.text(&s.Comm)
	c.text(&s.Exe)
	list(c, &s.TIDs, 1, func(_ int, t *uint32) { num(c, t) })
	last := uint64(0)
	list(c, &s.Mappings, 7, func(_ int, m *target.Mapping) {
		from, size := m.Start-last, m.End-m.Start
		num(c, &from)
		num(c, &size)
		m.Start = last + from
		m.End = max(m.Start+size, m.Start)
		last = m.End
		num(c, &m.Offset)
		num(c, &m.Perm)
		num(c, &m.Inode)
		if m.Inode != 0 {
			m.Dev = savedDevice
		}
		deleted := uint8(0)
		if m.Deleted {
			deleted = 1
		}
		num(c, &deleted)
		m.Deleted = deleted != 0
		c.text(&m.Path)
	})
	codePieces(c, &s.Memory)
	list(c, &s.Files, 5, func(_ int, f *File) {
		num(c, &f.Inode)
		c.text(&f.Name)
		c.text(&f.BuildID)
		num(c, &f.Size)
		f.Size = max(f.Size, 0)
		codePieces(c, &f.Pieces)
	})
	num(c, &s.Want.End)
	num(c, &s.Want.Worst)
	list(c, &s.Want.Frames, 5, func(_ int, f *Frame) {
		c.text(&f.Function)
		c.text(&f.Module)
		num(c, &f.Kind)
		num(c, &f.Prov)
		num(c, &f.Flags)
	})
}

func codeCapture(c coder, s *capture.Snapshot) {
	num(c, &s.Time)
	num(c, &s.PID)
	num(c, &s.TID)
	num(c, &s.State)
	num(c, &s.Syscall)
	num(c, &s.Flags)
	num(c, &s.Regs.PC)
	num(c, &s.Regs.Known)
	for i := range s.Regs.R {
		num(c, &s.Regs.R[i])
	}
	flags := s.Regs.Flags << 1
	if s.Regs.FlagsKnown {
		flags |= 1
	}
	num(c, &flags)
	s.Regs.Flags, s.Regs.FlagsKnown = flags>>1, flags&1 != 0
	list(c, &s.Kernel, 1, func(_ int, pc *uint64) { num(c, pc) })
	num(c, &s.StackAddr)
	c.bytes(&s.Stack)
	num(c, &s.StackTop)
	num(c, &s.OtherAddr)
	num(c, &s.OtherPC)
	c.bytes(&s.Other)
	list(c, &s.Regions, 2, func(_ int, r *capture.Region) {
		num(c, &r.Addr)
		c.bytes(&r.Bytes)
	})
}

// codePieces codes pieces. What they hold is in order, whatever a file says.
func codePieces(c coder, p *[]Piece) {
	end := uint64(0)
	list(c, p, 2, func(i int, e *Piece) {
		from := e.At - end
		num(c, &from)
		e.At = end + from
		c.bytes(&e.Bytes)
		if e.At < end || e.At+uint64(len(e.Bytes)) < e.At {
			e.At, e.Bytes = end, nil
		}
		end = e.At + uint64(len(e.Bytes))
	})
}

// writer implements coder.
type writer struct {
	b       []byte
	entries int // of all lists
}

func (w *writer) number(v *uint64) { w.b = binary.AppendUvarint(w.b, *v) }
func (w *writer) text(v *string) {
	w.b = append(binary.AppendUvarint(w.b, uint64(len(*v))), *v...)
}
func (w *writer) length(n, _ int) int {
	w.entries += n
	w.b = binary.AppendUvarint(w.b, uint64(n))
	return n
}
func (w *writer) ok() bool { return true }
func (w *writer) bytes(v *[]byte) {
	w.b = append(binary.AppendUvarint(w.b, uint64(len(*v))), *v...)
}

// reader implements coder for a file that may hold anything.
type reader struct {
	b       []byte
	entries int // of all lists
	bad     bool
}

func (r *reader) fail() {
	r.bad, r.b = true, nil
}

func (r *reader) number(v *uint64) {
	n, size := binary.Uvarint(r.b)
	if *v = n; size <= 0 {
		*v = 0
		r.fail()
		return
	}
	r.b = r.b[size:]
}

func (r *reader) take(n uint64, most uint64) []byte {
	if n > most || n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) text(v *string) {
	n := uint64(0)
	r.number(&n)
	*v = string(r.take(n, maxText))
}

func (r *reader) bytes(v *[]byte) {
	n := uint64(0)
	r.number(&n)
	*v = r.take(n, maxUnpacked)
}

func (r *reader) length(_, least int) int {
	n := uint64(0)
	if r.number(&n); n > uint64(maxEntries-r.entries) || n*uint64(least) > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	r.entries += int(n)
	return int(n)
}

func (r *reader) ok() bool { return !r.bad }
