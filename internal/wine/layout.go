package wine

// Fields of the thread block, the same in all releases of Windows and Wine for x64.
const (
	tebStackBase  = 0x08
	tebStackLimit = 0x10
	tebSelf       = 0x30
	tebThreadID   = 0x48
)

// layout is where a release of Wine keeps a thread's state. A process is searched with each, and the
// one that all of its threads agree with is used.
type layout struct {
	wine string // the releases

	// In the thread block.
	frame       uint64 // the innermost frame of a system call
	kernelStack uint64 // the stack of Wine's own code
	pthread     uint64 // the thread of the C library

	// In the frame of a system call.
	rip, rsp uint64
	prev     uint64 // the frame of the system call that led to a callback to Windows code
	size     uint32 // of what stacks are walked by
}

// kernelStackSize is the size of the stack of Wine's own code (unix_private.h: kernel_stack_size).
const kernelStackSize = 0x100000

var layouts = []layout{
	{wine: "10.0", frame: 0x328, kernelStack: 0x370, pthread: 0x320, rip: 0x70, rsp: 0x88, prev: 0xa0, size: 0xb8}, // seen
}
