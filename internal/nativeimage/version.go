package nativeimage

import (
	"bytes"
	"debug/elf"
	"io"

	"github.com/candid-profiler/candid/internal/objfile"
)

// markVersion precedes what made a program, in constants that it carries for support tools to find
// (com.oracle.svm.core.VM): "GraalVM CE 25.0.2+10.1".
var markVersion = []byte("com.oracle.svm.core.VM=")

const (
	maxVersion   = 64
	maxConstants = 8 << 20  // bytes of a section that is searched
	maxSearched  = 64 << 20 // bytes of all sections, which may overlap in a hostile file
)

// Version returns what a file says of the release that it was made with; "" if it says nothing, as
// programs made before GraalVM 22 do.
func Version(r io.ReaderAt) string {
	f, err := objfile.Open(r)
	if err != nil {
		return ""
	}
	left := uint64(maxSearched)
	for i := range f.Sections {
		s := &f.Sections[i]
		switch {
		case s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_ALLOC == 0 || s.Flags&elf.SHF_EXECINSTR != 0:
		case s.Name == heapSection || s.Size > min(maxConstants, left) || s.Packed():
		default:
			left -= s.Size
			b, err := f.Raw(s, maxConstants)
			if err != nil {
				continue
			}
			if v := versionIn(b); v != "" {
				return v
			}
		}
	}
	return ""
}

// versionIn finds the version among constants.
func versionIn(b []byte) string {
	i := bytes.Index(b, markVersion)
	if i < 0 {
		return ""
	}
	b = b[i+len(markVersion):]
	n := 0
	for n < len(b) && n < maxVersion && b[n] >= ' ' && b[n] <= '~' {
		n++
	}
	return string(b[:n])
}
