// Package html writes a profile as one self-contained web page: a flame graph that opens from a
// file, sends no requests and shows every stack of the profile.
//
// The stacks are merged here, into a tree of logical frames; the page (see the package web) only
// adds up, draws and answers. The format between the two is described in encode.go.
package html
