package coreclr

import "errors"

// Errors of Open, and ErrHeap of PendingAsync.
var (
	// ErrNotReady says that the runtime is still starting.
	ErrNotReady = errors.New("the runtime is still starting")
	// ErrVersion says that nothing is known of the runtime's version: frames of managed code are
	// then found by guessing, and have no names.
	ErrVersion = errors.New("its managed code is not known, only that of .NET 8, 9 and 10: methods have no names, and stacks with them are guesses")
	// ErrDescriptor says that what the runtime publishes about itself cannot be read.
	ErrDescriptor = errors.New("the runtime's contract descriptor cannot be read")
	// ErrPlatform says that managed code cannot be read on this kind of machine.
	ErrPlatform = errors.New("managed code is read on x86-64 only")
	// ErrHeap says that the heap cannot be read, only that of .NET 9 and 10 on Linux.
	ErrHeap = errors.New("its heap cannot be read")
)
