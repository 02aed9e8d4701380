package jfr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/flate"
)

// A packed file grows as a recording in gzip's format, which any program unpacks to a complete
// recording whenever candid is ended.
//
// It is a sequence of gzip members. A chunk begins with one that holds only its header, which is
// not compressed, so that it can be changed in place. A step appends a piece: one member with
// events and constants, and one with the stacks for other readers, which candid itself need not
// unpack. No system call both extends a file and changes a header, so a piece by itself is a chunk
// without events, like a page in a file that is not packed (grow.go), and once it is there the
// header includes it. Read as a continuation of the chunk before, the same bytes are events. The
// two readings differ from byte 68 on:
//
//	      as a chunk             as a part of the one before
//	 0    its header             an event of 70 bytes ('F') of no type ('L')
//	68    an event of 4 bytes    its end
//	70    …                      an event of 7 bytes ('L')
//	72    an event up to the     …
//	77    end, a filler          types without fields, and what is new
//
// The first byte of what is appended is written last. Until then it is 0, which programs that
// unpack take for the end of the file.
const (
	pieceHead = 77

	// Each member has an extra field of candid's (RFC 1952, 2.3.1.1) with the length of the member,
	// its unpacked length, where in that a checkpoint begins (0: nowhere), and what the member is.
	extraData    = 13
	memberHead   = 10 + 2 + 4 + extraData
	memberTail   = 8 // checksum and length
	atMemberSize = 16
	atUnpacked   = 20
	atHint       = 24
	atFlag       = 28

	memberEvents = 0
	memberHeader = 1 // a chunk's header
	memberTraces = 2 // the rest of the stacks for other readers

	// storedHead is the size of the head of a block that is not compressed.
	storedHead = 5

	// packLevel makes files a sixth smaller than level 1 does, at 1 µs a sample.
	packLevel = 5
	// mostRatio bounds how much larger than its packed size a member may unpack: no recording comes
	// near it.
	mostRatio = 64
	// tracesHead is how many bytes of a checkpoint of stacks are needed to skip it.
	tracesHead = 10 * maxLong
)

var memberMark = [memberHead]byte{0x1f, 0x8b, 8, 4, 10: 4 + extraData, 12: 'C', 13: 'D', 14: extraData}

// packing is a format in which a Stream packs its output.
type packing interface {
	// put appends a piece to the file, and then updates the header of its chunk to include it.
	put(out Output, p *piece) error
	// used returns where the file ends without the remains of a failed put.
	used() int64
	// settled returns the end of the part of the file that will not change any more. begun reports
	// whether there is a chunk that grows.
	settled(begun bool) int64
	// finish is called when nothing more follows.
	finish(out Output) error
}

// piece is the output of one step.
type piece struct {
	first                bool // of its chunk
	careful              bool // the file is complete between any two writes
	head, events, traces []byte
	hint                 int              // where in the piece a checkpoint of candid's begins; 0: nowhere
	header               [headerSize]byte // of the chunk, including this piece
}

// packer writes gzip's format.
type packer struct {
	base   int64 // where in the file the chunk begins
	header int64 // where in it the content of its header is
	end    int64 // where the used part of the file ends
	b      bytes.Buffer
	z      [2]*flate.Writer // compressors; the second one compresses less, where the first would exceed mostRatio
}

// NewPackedStream is NewStream for a file in gzip's format.
func NewPackedStream(out Output, src Source, info func() Info) *Stream {
	return newPacked(&packer{}, out, src, info)
}

func newPacked(form packing, out Output, src Source, info func() Info) *Stream {
	s := NewStream(out, src, info)
	s.pack, s.c.sorted = form, true
	return s
}

// bare returns what makes a piece a chunk of its own: types without fields, and a checkpoint
// without constants, with its position.
func bare() (b []byte, checkpoint int) {
	page := emptyPage()
	at := int(binary.BigEndian.Uint64(page.b[atCheckpoint:]))
	return page.b[pageAsEvent:page.gate], at - pageAsEvent
}

// packedStep is step for a packed file.
func (s *Stream) packedStep(info *Info, rest, traces []pool) error {
	at, head := s.size, []byte(nil)
	if !s.begun {
		at, head = headerSize, metadataEvent()
	} else {
		none, _ := bare()
		head = append(make([]byte, pieceHead), none...)
	}
	events, checkpoint := len(s.b), s.checkpoint
	hint, split := 0, 0
	for _, pools := range [][]pool{rest, traces} {
		if len(pools) == 0 {
			continue
		}
		from := len(head) + len(s.b)
		if err := s.constants(pools, at+int64(from), checkpoint); err != nil {
			return err
		}
		checkpoint = at + int64(from)
		if pools[0].typ == typeStackTrace {
			split = min(len(s.b), from-len(head)+tracesHead)
		} else {
			hint = from
		}
	}
	if split == 0 {
		split = len(s.b)
	}
	length := len(head) + len(s.b)
	if length > maxEvent {
		return fmt.Errorf("%d bytes of events and names at once, more than %d", length, maxEvent)
	}
	if s.begun {
		s.pieceHeader(head, length)
	}
	end := at + int64(length)
	p := piece{
		first: !s.begun, careful: s.careful, head: head, events: s.b[:split], traces: s.b[split:], hint: hint,
		header: s.header(end, headerSize, checkpoint, info),
	}
	if err := s.pack.put(s.out, &p); err != nil {
		return err
	}
	s.b = s.b[:events]
	s.begun, s.size, s.metadata, s.checkpoint = true, end, headerSize, checkpoint
	return nil
}

// put implements packing.
func (p *packer) put(out Output, piece *piece) error {
	p.b.Reset()
	base, header := p.base, p.header
	if piece.first {
		base, header = p.end, p.putHeader(piece.header)
	}
	if err := p.member(memberEvents, piece.hint, piece.head, piece.events); err != nil {
		return err
	}
	if len(piece.traces) > 0 {
		if err := p.member(memberTraces, 0, piece.traces, nil); err != nil {
			return err
		}
	}
	b := p.b.Bytes()
	if _, err := out.WriteAt(b[1:], p.end+1); err != nil {
		return err
	}
	if _, err := out.WriteAt(b[:1], p.end); err != nil {
		return err
	}
	if !piece.first {
		h := packedHeader(piece.header)
		if _, err := out.WriteAt(h[:], header); err != nil {
			return err
		}
	}
	p.base, p.header, p.end = base, header, p.end+int64(len(b))
	if p.b.Cap() > 4*keepRoom {
		p.b = bytes.Buffer{}
	}
	return nil
}

func (p *packer) used() int64 { return p.end }

func (p *packer) settled(begun bool) int64 {
	if begun {
		return p.base
	}
	return p.end
}

func (p *packer) finish(Output) error { return nil }

// pieceHeader fills in what makes a piece of length bytes a chunk.
func (s *Stream) pieceHeader(b []byte, length int) {
	_, checkpoint := bare()
	page := emptyPage()
	copy(b, page.b[:headerSize])
	be := binary.BigEndian
	be.PutUint64(b[atSize:], uint64(length))
	be.PutUint64(b[atCheckpoint:], uint64(pieceHead+checkpoint))
	be.PutUint64(b[atMetadata:], pieceHead)
	be.PutUint64(b[atStartNanos:], uint64(s.start)+s.from)
	be.PutUint64(b[atStartTicks:], tick(s.from))
	const filler = headerSize + 4
	copy(b[headerSize:], []byte{4, typeMetadata, pieceHead - pageAsEvent, typeOfPage})
	n := uint32(length - filler)
	copy(b[filler:], []byte{byte(n) | 0x80, byte(n>>7) | 0x80, byte(n>>14) | 0x80, byte(n >> 21 & 0x7f), typeMetadata})
}

// packedHeader returns a chunk's header followed by its checksum and length.
func packedHeader(h [headerSize]byte) (b [headerSize + memberTail]byte) {
	copy(b[:], h[:])
	binary.LittleEndian.PutUint32(b[headerSize:], crc32.ChecksumIEEE(h[:]))
	binary.LittleEndian.PutUint32(b[headerSize+4:], headerSize)
	return b
}

// putHeader appends the member of a chunk's header, and returns where in the file the header will
// be. It does not cross a page, so that one write can change it.
func (p *packer) putHeader(h [headerSize]byte) int64 {
	mark := memberMark
	at := p.end + memberHead + storedHead
	pad := int64(0)
	if left := pageSize - at%pageSize; left < headerSize+memberTail {
		pad = max(left, 4) // another extra field
	}
	le := binary.LittleEndian
	le.PutUint16(mark[10:], uint16(4+extraData+pad))
	le.PutUint32(mark[atMemberSize:], uint32(memberHead+pad+storedHead+headerSize+memberTail))
	le.PutUint32(mark[atUnpacked:], headerSize)
	mark[atFlag] = memberHeader
	p.b.Write(mark[:])
	if pad > 0 {
		field := make([]byte, pad)
		copy(field, "CP")
		le.PutUint16(field[2:], uint16(pad-4))
		p.b.Write(field)
	}
	p.b.Write([]byte{1, headerSize, 0, 0xff ^ headerSize, 0xff}) // the last block, not compressed
	b := packedHeader(h)
	p.b.Write(b[:])
	return at + pad
}

// member appends a member of two parts.
func (p *packer) member(flag byte, hint int, first, second []byte) error {
	length := len(first) + len(second)
	from := p.b.Len()
	for i, level := range []int{packLevel, flate.HuffmanOnly} {
		p.b.Truncate(from)
		p.b.Write(memberMark[:])
		if p.z[i] == nil {
			var err error
			if p.z[i], err = flate.NewWriter(&p.b, level); err != nil {
				return err
			}
		}
		z := p.z[i]
		z.Reset(&p.b)
		_, err := z.Write(first)
		_, err2 := z.Write(second)
		if err := errors.Join(err, err2, z.Close()); err != nil {
			return err
		}
		if (p.b.Len()-from)*mostRatio > length {
			break
		}
	}
	le := binary.LittleEndian
	sum := crc32.Update(crc32.ChecksumIEEE(first), crc32.IEEETable, second)
	tail := le.AppendUint32(le.AppendUint32(nil, sum), uint32(length))
	p.b.Write(tail)
	head := p.b.Bytes()[from:]
	le.PutUint32(head[atMemberSize:], uint32(len(head)))
	le.PutUint32(head[atUnpacked:], uint32(length))
	le.PutUint32(head[atHint:], uint32(hint))
	head[atFlag] = flag
	return nil
}
