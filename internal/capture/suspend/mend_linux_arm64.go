package suspend

// mends says that calls which a stop interrupted cannot be made to go on: on arm64 the kernel
// decides what becomes of a call before it stops the thread.
const mends = false

func (w *words) mend(int) bool { return false }
