package runtimes

import (
	"bytes"
	"debug/elf"
	"io"
	"regexp"
	"strconv"
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
	build, err := strconv.Atoi(m[3])
	if err != nil {
		return versionInPath(name)
	}
	// Up to 3.1 the file's version is not the product's. Since 5, the third number is the patch
	// and the last two digits of a year: 525 is the fifth of 2025.
	if m[1] == "4" {
		return versionInPath(name)
	}
	return m[1] + "." + m[2] + "." + strconv.Itoa(build/100)
}

// constantBehind returns the text that follows mark in a file's data, at most maxVersion bytes; ""
// if mark is not there.
func constantBehind(r io.ReaderAt, mark []byte) string {
	file, err := elf.NewFile(r)
	if err != nil {
		return ""
	}
	const maxConstants = 256 << 20
	buf := make([]byte, 1<<20)
	for _, s := range file.Sections {
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_EXECINSTR != 0 || s.Flags&elf.SHF_ALLOC == 0 || s.ReaderAt == nil {
			continue
		}
		size := min(s.Size, maxConstants)
		for off := uint64(0); off < size; off += uint64(len(buf)) - uint64(len(mark)) - maxVersion {
			n, _ := s.ReaderAt.ReadAt(buf[:min(uint64(len(buf)), size-off)], int64(off))
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
