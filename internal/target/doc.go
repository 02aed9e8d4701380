// Package target examines other processes: what they are, what is mapped into them, which threads
// they have, and what their memory holds. It only reads. It never stops, signals or writes to a
// process, and knows nothing of profiling.
//
// Everything that it reads is controlled by the process that it examines, so it is bounded in size
// and validated; a bad value is an error, never a panic.
package target
