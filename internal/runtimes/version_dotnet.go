package runtimes

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/pe"
)

// versionMark precedes the version that .NET's build compiles into each of its native files
// (eng/native/version: "@(#)Version 9.0.525.21509 @Commit: …").
var versionMark = []byte("@(#)Version ")

var buildVersion = regexp.MustCompile(`^([0-9]+)\.([0-9]+)\.([0-9]+)\.[0-9]+`)

// CoreCLRVersion returns the version of the CoreCLR in a file, "9.0.5": the one that its build
// compiled in, else the one in the name of its directory; "" if it is not known.
func CoreCLRVersion(r io.ReaderAt, name string) string {
	text := constantBehind(r, versionMark)
	m := buildVersion.FindStringSubmatch(text)
	if m == nil {
		return versionInPath(name)
	}
	number := func(digits string) uint32 {
		n, _ := strconv.ParseUint(digits, 10, 32) // the expression has digits only
		return uint32(n)
	}
	// Up to 3.1 the file's version is not the product's.
	if m[1] == "4" {
		return versionInPath(name)
	}
	major, minor := number(m[1]), number(m[2])
	return CoreCLRRelease(major, minor, number(m[3]))
}

// CoreCLRRelease returns the version that the version of a build stands for. Since .NET 5 its third
// number is the patch and the last two digits of a year: 525 is the fifth of 2025.
func CoreCLRRelease(major, minor, build uint32) string {
	return fmt.Sprintf("%d.%d.%d", major, minor, build/100)
}

// maxResources bounds the resources of an image that are searched, in bytes.
const maxResources = 1 << 20

// WindowsCoreCLRVersion is CoreCLRVersion for an image of Windows: the version is in what a single-file
// program exports for debuggers, or in the resources (Microsoft, "VS_FIXEDFILEINFO").
func WindowsCoreCLRVersion(image *pe.Image, exports []pe.Export, name string) string {
	for _, e := range exports {
		if e.Name == "DotNetRuntimeInfo" {
			if v := publishedVersion(image, e.RVA); v != "" {
				return v
			}
		}
	}
	for i := range image.Sections {
		s := &image.Sections[i]
		if s.Name != ".rsrc" {
			continue
		}
		b := make([]byte, min(s.Size, maxResources))
		if !image.ReadRVA(b, s.RVA) {
			break
		}
		const signature, needed = "\xbd\x04\xef\xfe\x00\x00\x01\x00", 16
		at := bytes.Index(b, []byte(signature))
		if at < 0 || at+needed > len(b) {
			break
		}
		high, low := binary.LittleEndian.Uint32(b[at+8:]), binary.LittleEndian.Uint32(b[at+12:])
		if major := high >> 16; major >= 5 {
			return CoreCLRRelease(major, high&0xffff, low>>16)
		}
		break
	}
	return versionInPath(name)
}

// publishedVersion reads the version in what a single-file program publishes for debuggers
// (src/coreclr/debug/runtimeinfo/runtimeinfo.h: RuntimeInfo), which has one since its form 2; "" if it has
// none.
func publishedVersion(image *pe.Image, rva uint32) string {
	const (
		form    = 20 // after the signature of 18 bytes
		version = form + 4 + 3*24
		end     = version + 4*4
	)
	var b [end]byte
	le := binary.LittleEndian
	if !image.ReadRVA(b[:], rva) || string(b[:18]) != "DotNetRuntimeInfo\x00" || le.Uint32(b[form:]) < 2 {
		return ""
	}
	return CoreCLRRelease(le.Uint32(b[version:]), le.Uint32(b[version+4:]), le.Uint32(b[version+8:]))
}

// constantBehind returns the text that follows mark in a file's data, at most maxVersion bytes; ""
// if mark is not there.
func constantBehind(r io.ReaderAt, mark []byte) string {
	file, err := objfile.Open(r)
	if err != nil {
		return ""
	}
	left := uint64(256 << 20) // of all sections, which may overlap in a hostile file
	buf := make([]byte, 1<<20)
	for i := range file.Sections {
		s := &file.Sections[i]
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_EXECINSTR != 0 || s.Flags&elf.SHF_ALLOC == 0 || s.Packed() {
			continue
		}
		content, size := file.SectionReader(s), min(s.Size, left)
		left -= size
		for off := uint64(0); off < size; off += uint64(len(buf)) - uint64(len(mark)) - maxVersion {
			n, _ := content.ReadAt(buf[:min(uint64(len(buf)), size-off)], int64(off))
			if i := bytes.Index(buf[:n], mark); i >= 0 {
				text := buf[i+len(mark) : n]
				return string(text[:min(len(text), maxVersion)])
			}
			if n < len(buf) {
				break
			}
		}
	}
	return ""
}
