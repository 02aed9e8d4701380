package profile

// What a Builder's profile is described by can be read and changed while it
// grows, without the cost of Profile.

// Meta is the profile's Meta.
func (b *Builder) Meta() *Meta { return &b.p.Meta }

// Threads are the threads so far; their names may be changed in place.
func (b *Builder) Threads() []Thread { return b.p.Threads }

// Processes are the processes so far, by the indices that AddProcess gave; they
// may be changed in place.
func (b *Builder) Processes() []Process { return b.p.Processes }

// AddProcess appends a process and gives its index.
func (b *Builder) AddProcess(p Process) int {
	b.p.Processes = append(b.p.Processes, p)
	return len(b.p.Processes) - 1
}

// Funcs are the functions so far.
func (b *Builder) Funcs() []Func { return b.p.Funcs }

// Frames are the frames so far.
func (b *Builder) Frames() []Frame { return b.p.Frames }

// At gives a node of the trie.
func (b *Builder) At(node uint32) Node { return b.nodes.At(node) }

// Syscalls are the names of system calls so far; the first is none.
func (b *Builder) Syscalls() []string { return b.p.Syscalls }
