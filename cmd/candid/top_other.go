//go:build !linux

package main

// threadState is nil: here nothing says what a thread does now.
var threadState func(pid, tid int) string
