package jfr

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// A file grows so that it is complete whenever candid is ended.
//
// Readers take what follows a chunk's size for another chunk, and refuse the file if it is not one.
// No system call both extends a file and changes the size in a header, so only chunks are appended:
// pages, each a whole chunk without events, written at the end of the file by one call, which a
// kill does not tear because it does not cross a page. Then the size in the header of the chunk
// that grows is set to include them. Pages can also be read as events: the first bytes of a page,
// FLR, are an event of 70 bytes (0x46) of a type that does not exist, followed by the page's own
// types and a filler to its end.
//
// Within the chunk, unused space is one event, a filler. Before it is a gate, an event of two
// bytes. New events are written into the filler, after its head, followed by another gate and a
// filler for the rest; then the header is updated with the constants; then the gate's size is
// changed, by one byte, from its own to that of gate and filler's head together, so that the new
// events follow it.
//
// Gates and fillers have the type of metadata, which all readers skip.
const (
	pageSize = 4096

	gateShut   = 2                     // bytes: only the gate itself
	fillerHead = sizeBytes + 1         // size and type
	gateOpen   = gateShut + fillerHead // so that the next event is what the filler holds

	// A page read as an event: its apparent length, two bytes more than its header, and its type,
	// which must not exist.
	pageAsEvent = headerSize + 2 // = 'F'
	typeOfPage  = 'L'
)

// gate returns a shut gate and a filler up to end, at a position of the chunk.
func gate(at, end int64) [gateOpen]byte {
	n := uint32(end - at - gateShut)
	return [gateOpen]byte{gateShut, typeMetadata, byte(n) | 0x80, byte(n>>7) | 0x80, byte(n>>14) | 0x80, byte(n >> 21 & 0x7f), typeMetadata}
}

// emptyPage is a page as it is appended, except for the times in its header.
var emptyPage = sync.OnceValue(func() emptied {
	b := make([]byte, headerSize, pageSize)
	b = append(b, pageAsEvent-headerSize, typeMetadata)
	b = append(b, encodeMetadata(node("root").with(bareTypes(), region()))...)
	checkpoint := len(b)
	b = append(b, 7, typeCheckpoint, firstTick, 0, 0, 0, 0)
	firstGate := int64(len(b))
	g := gate(firstGate, pageSize)
	b = append(b, g[:]...)[:pageSize]
	copy(b, magic[:])
	be := binary.BigEndian
	be.PutUint16(b[atVersion:], majorVersion)
	be.PutUint64(b[atSize:], pageSize)
	be.PutUint64(b[atCheckpoint:], uint64(checkpoint))
	be.PutUint64(b[atMetadata:], pageAsEvent)
	be.PutUint64(b[atTickRate:], uint64(time.Second))
	be.PutUint32(b[atFlags:], flagCompressed)
	return emptied{[pageSize]byte(b), firstGate}
})

// bareTypes returns the types that some readers require in every chunk, without any fields: a page
// has no values of them.
func bareTypes() *element {
	all := node("metadata")
	for i := range typeDefs {
		if t := &typeDefs[i]; t.id <= typeSymbol {
			all.with(node("class", "id", strconv.Itoa(t.id), "name", t.name))
		}
	}
	return all
}

type emptied struct {
	b    [pageSize]byte
	gate int64
}

// appendPage extends the file by a page.
func (s *Stream) appendPage(at int64) error {
	empty := emptyPage()
	s.page = append(s.page[:0], empty.b[:]...)
	be := binary.BigEndian
	be.PutUint64(s.page[atStartNanos:], uint64(s.start)+s.from)
	be.PutUint64(s.page[atStartTicks:], tick(s.from))
	_, err := s.out.WriteAt(s.page, at)
	return err
}

// begin begins a chunk at the end of the file.
func (s *Stream) begin() error {
	if err := s.appendPage(s.base); err != nil {
		return err
	}
	s.begun, s.size, s.gate = true, pageSize, emptyPage().gate
	s.checkpoint, s.metadata = 0, 0
	return nil
}

// grow extends the chunk to hold n bytes from its gate on, a gate behind them and room for one
// more.
func (s *Stream) grow(n int64) error {
	end := (s.gate + gateOpen + n + 3*gateOpen + pageSize - 1) &^ (pageSize - 1)
	if end-s.gate > maxEvent {
		return fmt.Errorf("%d bytes of events and names at once, more than %d", n, maxEvent)
	}
	if !s.careful {
		if err := s.out.Truncate(s.base + end); err != nil {
			return err
		}
		s.size = end
		return nil
	}
	for at := s.size; at < end; at += pageSize {
		if err := s.appendPage(s.base + at); err != nil {
			return err
		}
	}
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(end))
	if _, err := s.out.WriteAt(size[:], s.base+atSize); err != nil {
		return err
	}
	s.size = end
	// One filler for all pages, before any of them is written to.
	g := gate(s.gate+gateOpen, end)
	if _, err := s.out.WriteAt(g[:], s.base+s.gate+gateOpen); err != nil {
		return err
	}
	return s.open(s.gate + gateOpen)
}

// room reports whether n bytes fit in the chunk behind its gate.
func (s *Stream) room(n int64) bool { return s.gate+gateOpen+n+2*gateOpen <= s.size }

// open opens the gate; next is the position of the next one, which is shut.
func (s *Stream) open(next int64) error {
	if _, err := s.out.WriteAt([]byte{gateOpen}, s.base+s.gate); err != nil {
		return err
	}
	s.gate = next
	return nil
}
