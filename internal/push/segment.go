package push

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"time"
)

// A segment is a file of the buffer: the messages of one flush, and behind them what became of each.
// Everything in it is appended. It begins with a line that names the protocol for which the messages
// were made. Each record has a head of a fixed size, with a checksum of itself and one of the body.
//
//	kind 1 byte, 3 bytes 0, index 4, time 8 (ns since 1970), size of the body 4,
//	checksum of the body 4, checksum of the head so far 4; all little-endian, CRC-32C
const (
	segmentHead = "candid push buffer 1 "
	recordHead  = 28

	recordMessage = 'M' // a message, by index from 0
	recordSending = 'S' // from here on the server may have it
	recordUnsent  = 'U' // it certainly does not
	recordSettled = 'D' // sent, dropped or counted as ambiguous
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendRecord appends a record.
func appendRecord(b []byte, kind byte, index uint32, from time.Time, body []byte) []byte {
	at := len(b)
	b = append(b, kind, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, index)
	var nanos int64
	if !from.IsZero() {
		nanos = from.UnixNano()
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(nanos))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = binary.LittleEndian.AppendUint32(b, checksum(body))
	b = binary.LittleEndian.AppendUint32(b, checksum(b[at:]))
	return append(b, body...)
}

// header returns the beginning of a segment.
func segmentHeader(protocol string) []byte { return []byte(segmentHead + protocol + "\n") }

// stored is a message in a segment.
type stored struct {
	from    time.Time
	off     int64 // of the body
	size    int
	sum     uint32
	sending bool // the server may have it
	settled bool
}

// scanned is what is in a segment.
type scanned struct {
	messages []stored
	end      int64 // of the last whole record
	// damaged means that something that is not a record follows, which is not just the beginning of
	// one: whether messages were settled may have been behind it.
	damaged bool
}

// scan reads the heads of a segment's records. Bodies are checked when they are sent. ok is false if
// it is not a segment of this protocol.
func scan(r io.ReaderAt, size int64, protocol string) (s scanned, ok bool) {
	head := segmentHeader(protocol)
	b := make([]byte, max(len(head), recordHead))
	if n, _ := r.ReadAt(b[:len(head)], 0); string(b[:n]) != string(head) {
		return s, false
	}
	s.end = int64(len(head))
	for s.end < size {
		h := b[:recordHead]
		n, _ := r.ReadAt(h, s.end)
		if n < recordHead {
			return s, true // cut off
		}
		kind, index, body := h[0], binary.LittleEndian.Uint32(h[4:]), int64(binary.LittleEndian.Uint32(h[16:]))
		if checksum(h[:recordHead-4]) != binary.LittleEndian.Uint32(h[recordHead-4:]) {
			s.damaged = true
			return s, true
		}
		next := s.end + recordHead + body
		if next > size {
			return s, true // cut off
		}
		switch {
		case kind == recordMessage && int(index) == len(s.messages) && body <= maxMessage*2:
			s.messages = append(s.messages, stored{
				from: time.Unix(0, int64(binary.LittleEndian.Uint64(h[8:]))), off: s.end + recordHead, size: int(body), sum: binary.LittleEndian.Uint32(h[20:]),
			})
		case int64(index) < int64(len(s.messages)) && body == 0 && kind == recordSending:
			s.messages[index].sending = true
		case int64(index) < int64(len(s.messages)) && body == 0 && kind == recordUnsent:
			s.messages[index].sending = false
		case int64(index) < int64(len(s.messages)) && body == 0 && kind == recordSettled:
			s.messages[index].settled = true
		default:
			s.damaged = true
			return s, true
		}
		s.end = next
	}
	return s, true
}

// readBody returns a message's body; false if it is not what was written.
func readBody(r io.ReaderAt, m *stored) ([]byte, bool) {
	b := make([]byte, m.size)
	if n, _ := r.ReadAt(b, m.off); n < len(b) || checksum(b) != m.sum {
		return nil, false
	}
	return b, true
}

// segment is a file of the buffer that has unsettled messages.
type segment struct {
	name string
	size int64
	left int // unsettled messages
}

// mark appends a record without a body to a segment.
func (g *segment) mark(root *os.Root, kind byte, index uint32) error {
	f, err := root.OpenFile(g.name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := f.Write(appendRecord(nil, kind, index, time.Time{}, nil))
	g.size += int64(n)
	return err
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
