// Package oracle tells tests the true call stack. It single-steps one thread of another process and
// keeps a shadow stack of the calls that the thread really executed, so that a walker's answer can
// be compared with the truth at every instruction. It is test support: it stops the thread that it
// watches and must never be used by the profiler itself.
package oracle
