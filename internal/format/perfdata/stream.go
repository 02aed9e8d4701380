package perfdata

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/candid-profiler/candid/internal/memlimit"
)

// record is one record. Its body is valid until the next one is read.
type record struct {
	typ  uint32
	misc uint16
	body []byte
}

// The types of records: the kernel's, and from 64 on perf's own.
const (
	recordMmap          = 1
	recordLost          = 2
	recordComm          = 3
	recordExit          = 4
	recordThrottle      = 5
	recordFork          = 7
	recordSample        = 9
	recordMmap2         = 10
	recordLostSamples   = 13
	recordHeaderAttr    = 64
	recordTracingData   = 66
	recordBuildID       = 67
	recordFinishedRound = 68
	recordAuxtrace      = 71
	recordEventUpdate   = 78
	recordHeaderFeature = 80
	recordCompressed    = 81
	recordCompressed2   = 83
	firstOwn            = 64
)

const recordHeader = 8

// recordReader reads records one after the other.
type recordReader struct {
	in  *bufio.Reader
	buf [1 << 16]byte
}

func newRecordReader(r io.Reader) *recordReader {
	return &recordReader{in: bufio.NewReaderSize(r, 1<<17)}
}

// next returns io.EOF at the end, and io.ErrUnexpectedEOF in the middle of a record.
func (rr *recordReader) next() (record, error) {
	head := rr.buf[:recordHeader]
	if _, err := io.ReadFull(rr.in, head); err != nil {
		return record{}, err
	}
	rec := record{typ: le.Uint32(head), misc: le.Uint16(head[4:])}
	size := int(le.Uint16(head[6:]))
	if size < recordHeader {
		return record{}, fmt.Errorf("%w: a record of %d bytes", ErrMalformed, size)
	}
	rec.body = rr.buf[recordHeader:size]
	if _, err := io.ReadFull(rr.in, rec.body); err != nil {
		return record{}, cut(err)
	}
	// Some records are followed by data that is not included in their size.
	var more uint64
	c := cursor{b: rec.body}
	switch rec.typ {
	case recordTracingData:
		more = (uint64(c.u32()) + 7) &^ 7
	case recordAuxtrace:
		more = c.u64()
	}
	if more > 0 {
		if more > 1<<40 {
			return record{}, fmt.Errorf("%w: %d bytes of trace data", ErrMalformed, more)
		}
		if _, err := io.CopyN(io.Discard, rr.in, int64(more)); err != nil {
			return record{}, cut(err)
		}
	}
	return rec, nil
}

func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// maxWindow bounds the memory for decompression: perf's own levels use up to 8 MiB, the highest of
// zstd 128.
const maxWindow = 128 << 20

// maxUnpacked bounds the total size of decompressed records: a few bytes can stand for very many.
const maxUnpacked = 64 << 30

// unpacker returns the contents of compressed records as one stream. Other records between them are
// kept until they are asked for.
type unpacker struct {
	rr      *recordReader
	payload []byte
	between []record
	err     error
}

// Read implements io.Reader for the decompressor.
func (u *unpacker) Read(p []byte) (int, error) {
	for len(u.payload) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		rec, err := u.rr.next()
		if err != nil {
			u.err = err
			return 0, err
		}
		if !u.take(rec) && len(u.between) < 1<<12 {
			rec.body = append([]byte(nil), rec.body...)
			u.between = append(u.between, rec)
		}
	}
	n := copy(p, u.payload)
	u.payload = u.payload[n:]
	return n, nil
}

// take takes over the payload of a compressed record.
func (u *unpacker) take(rec record) bool {
	switch rec.typ {
	case recordCompressed:
		u.payload = rec.body
	case recordCompressed2: // the size of the data comes first, padding after it
		c := cursor{b: rec.body}
		u.payload = c.take(c.u64())
	default:
		return false
	}
	return true
}

// each calls f for every record of the stream, including those that are packed in others. A
// recording that was cut off ends where it was cut: then cutOff is true.
func each(rr *recordReader, m *memlimit.Meter, f func(record) error) (cutOff bool, err error) {
	for {
		rec, err := rr.next()
		switch {
		case err == io.EOF:
			return false, nil
		case err == io.ErrUnexpectedEOF:
			return true, nil
		case err != nil:
			return false, err
		}
		u := &unpacker{rr: rr}
		if u.take(rec) {
			return u.each(m, f)
		}
		if err := f(rec); err != nil {
			return false, err
		}
	}
}

// each continues after the first compressed record: from there on everything is one compressed
// stream, which perf never ends.
func (u *unpacker) each(m *memlimit.Meter, f func(record) error) (cutOff bool, err error) {
	z, err := zstd.NewReader(u, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return false, err
	}
	defer z.Close()
	inner := newRecordReader(io.LimitReader(m.Reader(z), maxUnpacked))
	for {
		rec, err := inner.next()
		if err == nil {
			if rec.typ == recordCompressed || rec.typ == recordCompressed2 {
				return false, fmt.Errorf("%w: compressed twice", ErrMalformed)
			}
			err = f(rec)
		}
		for _, b := range u.between {
			if err == nil {
				err = f(b)
			}
		}
		u.between = u.between[:0]
		switch {
		case err == nil:
		case u.err == io.EOF && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
			return false, nil
		case u.err == io.ErrUnexpectedEOF, err == io.EOF, err == io.ErrUnexpectedEOF:
			return true, nil
		default:
			return false, err
		}
	}
}
