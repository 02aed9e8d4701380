// Package target looks at other processes: what they are, what is mapped into
// them, which threads they have, and what their memory holds. It only reads. It
// never stops, signals or writes to a process, and knows nothing of profiling.
//
// Everything it reads was written by the process that it looks at, so it is
// bounded in size and checked for sense; a bad value is an error, never a panic.
package target
