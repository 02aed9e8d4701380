package jfr

import (
	"encoding/binary"
	"github.com/candid-profiler/candid/internal/profile"
	"unicode/utf8"
)

// The header of a chunk: big-endian, at these offsets. HotSpot:
// share/jfr/recorder/repository/jfrChunkWriter.cpp, and jdk.jfr.internal.consumer.ChunkHeader for
// how it is read.
const (
	headerSize = 68

	atVersion    = 4  // major and minor, 2 bytes each
	atSize       = 8  // of the chunk, 8 bytes like all that follow
	atCheckpoint = 16 // the last one, from the chunk's begin
	atMetadata   = 24
	atStartNanos = 32 // of the Unix epoch
	atDuration   = 40 // ns
	atStartTicks = 48
	atTickRate   = 56 // ticks a second
	// atFlags is the state of the file (0: no one is changing the header) and, in the last byte,
	// flagCompressed.
	atFlags = 64

	flagCompressed = 1 // integers are of variable length

	majorVersion = 2
)

var magic = [4]byte{'F', 'L', 'R', 0}

// Types of events that every file has.
const (
	typeMetadata   = 0
	typeCheckpoint = 1
)

// How a string is written, in its first byte.
const (
	stringNull = iota
	stringEmpty
	stringConstant // the number of a constant of java.lang.String follows
	stringUTF8     // the number of bytes and the bytes follow
	stringChars    // the number of UTF-16 units and each as an integer follow
	stringLatin1   // the number of bytes and the bytes follow
)

// Integers take seven bits a byte, the lowest first, and bit 7 means that more follow; the ninth
// byte of a long is all data.
const maxLong = 9

func appendLong(b []byte, v uint64) []byte {
	for range maxLong - 1 {
		if v < 0x80 {
			return append(b, byte(v))
		}
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// appendInt writes an int: a negative one takes five bytes.
func appendInt(b []byte, v int32) []byte { return binary.AppendUvarint(b, uint64(uint32(v))) }

func appendString(b []byte, s string) []byte {
	if s == "" {
		return append(b, stringEmpty)
	}
	return appendSymbol(b, profile.PlainText(s))
}

// appendSymbol writes a string in the one encoding that every reader accepts for symbols.
func appendSymbol(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s)) // each wrong byte becomes U+FFFD
	}
	b = append(b, stringUTF8)
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// appendBytes writes bytes as a string that every reader can skip. They are marked as UTF-8, which
// they are not: some readers know no other bytes, and none checks.
func appendBytes(b, data []byte) []byte {
	b = append(b, stringUTF8)
	b = binary.AppendUvarint(b, uint64(len(data)))
	return append(b, data...)
}

// sizeBytes is the length of the size field of an event whose size is known only after it is
// written; maxEvent is the largest size that fits.
const (
	sizeBytes = 4
	maxEvent  = 1<<(7*sizeBytes) - 1
)

// reserveSize reserves the size field of an event that begins here.
func reserveSize(b []byte) []byte { return append(b, 0, 0, 0, 0) }

// putSize sets the size of the event that begins at from and ends with b.
func putSize(b []byte, from int) {
	n := uint32(len(b) - from)
	b[from] = byte(n) | 0x80
	b[from+1] = byte(n>>7) | 0x80
	b[from+2] = byte(n>>14) | 0x80
	b[from+3] = byte(n >> 21 & 0x7f)
}
