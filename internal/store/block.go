package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The kinds of blocks, one for each file.
const (
	kindNames     = 'N'
	kindNodes     = 'T'
	kindProcesses = 'P'
	kindSamples   = 'S'
)

// version is the version of the format that is written. Readers know it and the ones before, and refuse
// later ones. Version 1 had names and nodes as tables1.go reads them.
const version = 2

const (
	magic      = "cblk"
	headerSize = 44
	// maxBlock is the most bytes of a block before and after packing. A block of samples holds some
	// seconds of one machine, and the others what is new in it.
	maxBlock = 64 << 20
)

// The codecs of blocks.
const (
	stored = 0
	zstded = 1
	parted = 2 // several bodies, each packed: see parts.go
)

// header is what comes before each block:
//
//	0  "cblk"
//	4  kind, version, codec, 0
//	8  length in the file, uint32, little-endian like everything
//	12 length when unpacked, uint32
//	16 from: for samples ns since 1970, else the index of the first entry
//	24 to: likewise
//	32 CRC-32C of the bytes in the file
//	36 0
//	40 CRC-32C of the 40 bytes before
type header struct {
	kind, version, codec byte
	length, raw          uint32
	from, to             int64
	sum                  uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (h *header) append(b []byte) []byte {
	at := len(b)
	b = append(b, magic...)
	b = append(b, h.kind, h.version, h.codec, 0)
	b = binary.LittleEndian.AppendUint32(b, h.length)
	b = binary.LittleEndian.AppendUint32(b, h.raw)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.from))
	b = binary.LittleEndian.AppendUint64(b, uint64(h.to))
	b = binary.LittleEndian.AppendUint32(b, h.sum)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
}

// parseHeader reports whether b begins with a header that is as it was written.
func parseHeader(b []byte) (h header, ok bool) {
	if len(b) < headerSize || string(b[:4]) != magic || binary.LittleEndian.Uint32(b[40:]) != crc32.Checksum(b[:40], castagnoli) {
		return h, false
	}
	h = header{
		kind: b[4], version: b[5], codec: b[6],
		length: binary.LittleEndian.Uint32(b[8:]), raw: binary.LittleEndian.Uint32(b[12:]),
		from: int64(binary.LittleEndian.Uint64(b[16:])), to: int64(binary.LittleEndian.Uint64(b[24:])),
		sum: binary.LittleEndian.Uint32(b[32:]),
	}
	return h, h.length <= maxBlock && h.raw <= maxBlock
}

// packer packs blocks. It is not safe for several goroutines.
type packer struct {
	z    *zstd.Encoder
	work []byte
}

// append appends a block of raw to b.
func (p *packer) append(b []byte, kind byte, from, to int64, raw []byte) ([]byte, error) {
	if len(raw) > maxBlock {
		return b, fmt.Errorf("a block of %d bytes is more than the %d that a store takes", len(raw), maxBlock)
	}
	p.work = p.zstd(raw, p.work[:0])
	body, codec := p.work, byte(zstded)
	if len(body) >= len(raw) {
		body, codec = raw, stored
	}
	h := header{kind: kind, version: version, codec: codec, length: uint32(len(body)), raw: uint32(len(raw)), from: from, to: to, sum: crc32.Checksum(body, castagnoli)}
	return append(h.append(b), body...), nil
}

// zstd appends raw, packed, to b.
func (p *packer) zstd(raw, b []byte) []byte {
	if p.z == nil {
		// The options are constants and valid. A window of 1 MiB is larger than nearly all blocks.
		p.z, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
			zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	}
	return p.z.EncodeAll(raw, b)
}

// unpackers are decoders, which keep tables of some hundred kilobytes each.
var unpackers = sync.Pool{New: func() any {
	d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxBlock), zstd.IgnoreChecksum(true))
	return d
}}

var errSum = errors.New("the checksum is wrong")

// unpack checks the body of a block and unpacks it into buf, which it may replace by a larger one.
func (h *header) unpack(body, buf []byte) ([]byte, error) {
	switch {
	case uint32(len(body)) != h.length:
		return nil, fmt.Errorf("%d bytes of %d are there", len(body), h.length)
	case crc32.Checksum(body, castagnoli) != h.sum:
		return nil, errSum
	case h.codec == stored:
		return append(buf[:0], body...), nil
	case h.codec != zstded:
		return nil, fmt.Errorf("%w: packed in a way %d that is not known", ErrNewer, h.codec)
	}
	return unzstd(body, buf, h.raw)
}

// unzstd unpacks into buf what has raw bytes, at most maxBlock. It may replace buf by a larger one.
func unzstd(body, buf []byte, raw uint32) ([]byte, error) {
	d := unpackers.Get().(*zstd.Decoder)
	defer unpackers.Put(d)
	// The length bounds what is unpacked: zstd data may claim anything.
	if uint32(cap(buf)) < raw {
		buf = make([]byte, 0, raw)
	}
	out, err := d.DecodeAll(body, buf[:0])
	if err == nil && uint32(len(out)) != raw {
		err = fmt.Errorf("%d bytes were packed, not %d", len(out), raw)
	}
	return out, err
}
