package metadata

import (
	"testing"
	"unicode/utf8"

	"github.com/candid-profiler/candid/internal/javaname"
)

func FuzzFields(f *testing.F) {
	f.Add([]byte{2, 1, 5, 6, 13, 9, 1}, true)
	f.Fuzz(func(t *testing.T, data []byte, biased bool) {
		bias := uint32(0)
		if biased {
			bias = 1
		}
		if n := len(decodeFieldStream(data, bias)); n > len(data) {
			t.Fatalf("%d fields of %d bytes", n, len(data))
		}
		decodeFieldArray(data, len(data))
	})
}

func FuzzNames(f *testing.F) {
	f.Add([]byte("java/lang/Thread"), "run")
	f.Add([]byte("a/B$$Lambda$7+0x00ff"), "m")
	f.Add([]byte{0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80, 0xC0, 0x80}, "m")
	f.Fuzz(func(t *testing.T, class []byte, method string) {
		s := modifiedUTF8(class)
		if !utf8.ValidString(s) {
			t.Fatalf("%q", s)
		}
		javaname.Function(s, method)
	})
}
