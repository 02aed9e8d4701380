package jfr

import "testing"

// TornFiles is tornFiles for the tests from outside.
var TornFiles = tornFiles

// TornPackedFiles is tornPackedFiles, of files unpacked.
func TornPackedFiles(t testing.TB, n, stride int, visit func(name string, b []byte)) {
	tornPackedFiles(t, n, stride, func(name string, b []byte) { visit(name, gunzip(t, name, b)) })
}
