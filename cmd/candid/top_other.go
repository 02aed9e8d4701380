//go:build !linux

package main

// threadState is nil: nothing shows what a thread is doing here.
var threadState func(pid, tid int) string
