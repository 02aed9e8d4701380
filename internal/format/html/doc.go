// Package html writes a profile as one self-contained web page: a flame graph
// that opens from a file, asks no server for anything and shows every stack
// that the profile holds.
//
// The stacks are merged here, into a tree of logical frames; the page (see the
// package web) only adds up, draws and answers. How the two sides talk is
// described in encode.go.
package html
