// Package winunwind reads the unwind information of Windows on x64: RUNTIME_FUNCTION entries and
// the UNWIND_INFO that they point to, versions 1 and 2. It answers the same question as ehframe, in
// the same form: how does one get from a frame that stopped at an address to its caller's
// registers? Images of Windows have it, mapped by Windows or by Wine, and so has the code that
// CoreCLR generates, on every system.
//
// Sources: Microsoft, "x64 exception handling"; dotnet/runtime, src/coreclr/unwinder/amd64 and
// clrnt.h (version 2, operation 11); LLVM, Win64EH.h.
package winunwind

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrFormat says that unwind information is damaged or of an unknown version.
var ErrFormat = errors.New("unwind information is damaged")

// Function is a RUNTIME_FUNCTION: the addresses [Begin, End) of a function, or of a part of one,
// and of its UNWIND_INFO. Addresses are relative to the image, or to whatever base the runtime that
// generated the code uses.
type Function struct {
	Begin, End, Unwind uint32
}

// Contains reports whether rva lies in the function.
func (f Function) Contains(rva uint32) bool { return rva >= f.Begin && rva < f.End }

// FunctionSize is the size of a RUNTIME_FUNCTION, in bytes.
const FunctionSize = 12

// ParseFunction reads a RUNTIME_FUNCTION from the first FunctionSize bytes of b.
func ParseFunction(b []byte) Function {
	return Function{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
}

// Indirect returns the address of another RUNTIME_FUNCTION if the entry only refers to that.
func (f Function) Indirect() (rva uint32, ok bool) { return f.Unwind &^ 1, f.Unwind&1 != 0 }

// Flags of UNWIND_INFO.
const (
	FlagExceptionHandler = 1
	FlagUnwindHandler    = 2
	FlagChained          = 4
)

// Operations of unwind codes.
const (
	opPush       = 0
	opAllocLarge = 1
	opAllocSmall = 2
	opSetFrame   = 3
	opSave       = 4
	opSaveFar    = 5
	opEpilog     = 6 // version 1: an obsolete way to save 8 bytes of an XMM register
	opSpare      = 7
	opSaveXMM    = 8
	opSaveXMMFar = 9
	opMachine    = 10
	opFrameLarge = 11 // CoreCLR on Unix only
)

// MaxInfoSize is the size of the largest UNWIND_INFO without its handler's data, in bytes: the
// header, 256 codes, and a chained entry.
const MaxInfoSize = headerSize + 256*codeSize + FunctionSize

const (
	headerSize = 4
	codeSize   = 2
)

// Info is an UNWIND_INFO.
type Info struct {
	Version     uint8
	Flags       uint8
	Prolog      uint8 // size of the prologue, bytes
	FrameReg    uint8 // hardware number of the frame register; 0: none
	FrameOffset uint8 // of the frame register from the stack pointer, in units of 16 bytes
	Codes       []byte
	Chain       Function // if Flags has FlagChained
}

// InfoSize returns the size of the UNWIND_INFO that begins with the first 4 bytes of header, up to
// and with a chained entry, without its handler's data. It is at most MaxInfoSize.
func InfoSize(header []byte) int {
	n := headerSize + (int(header[2])+1)&^1*codeSize
	if header[0]>>3&FlagChained != 0 {
		n += FunctionSize
	}
	return n
}

// Parse reads an UNWIND_INFO. Codes stays a part of b. The error wraps ErrFormat.
func Parse(b []byte) (Info, error) {
	if len(b) < headerSize || len(b) < InfoSize(b) {
		return Info{}, fmt.Errorf("UNWIND_INFO ends after %d bytes: %w", len(b), ErrFormat)
	}
	u := Info{Version: b[0] & 7, Flags: b[0] >> 3, Prolog: b[1], FrameReg: b[3] & 15, FrameOffset: b[3] >> 4}
	if u.Version != 1 && u.Version != 2 {
		return Info{}, fmt.Errorf("UNWIND_INFO of version %d: %w", u.Version, ErrFormat)
	}
	u.Codes = b[headerSize : headerSize+int(b[2])*codeSize]
	if u.Flags&FlagChained != 0 {
		u.Chain = ParseFunction(b[headerSize+(int(b[2])+1)&^1*codeSize:])
	}
	return u, nil
}

// slots returns how many codes an operation takes, itself included; 0 if it is unknown.
func slots(version, op, info uint8) int {
	switch op {
	case opPush, opAllocSmall, opSetFrame, opMachine:
		return 1
	case opAllocLarge:
		switch info {
		case 0:
			return 2
		case 1:
			return 3
		}
	case opEpilog:
		if version == 1 {
			return 2
		}
		return 1
	case opSave, opSaveXMM:
		return 2
	case opSpare, opSaveFar, opSaveXMMFar, opFrameLarge:
		return 3
	}
	return 0
}
