package jfr

import "testing"

// TornFiles exports the torn files of a form to external tests: the files that it leaves, unpacked.
func TornFiles(name string) func(t testing.TB, n, stride int, visit func(name string, b []byte)) {
	for _, f := range allForms {
		if f.name == name {
			return func(t testing.TB, n, stride int, visit func(name string, b []byte)) {
				f.torn(t, &f, n, stride, func(name string, b []byte) { visit(name, f.unpack(t, name, b)) })
			}
		}
	}
	panic(name)
}

// TornZstd is the same for files in zstd's form, packed as they are and unpacked.
func TornZstd(t testing.TB, n, stride int, visit func(name string, b, unpacked []byte)) {
	for _, f := range packedForms {
		if f.name == "zstd" {
			f.torn(t, &f, n, stride, func(name string, b []byte) { visit(name, b, f.unpack(t, name, b)) })
		}
	}
}
