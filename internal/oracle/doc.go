// Package oracle tells tests who called whom. It single-steps one thread of
// another process and keeps a shadow stack of the calls that the thread really
// executed, so that a walker's answer can be compared with the truth at every
// instruction. It is support for tests: it stops the thread that it watches and
// must never be used by the profiler itself.
package oracle
