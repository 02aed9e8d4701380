package profile

// The descriptions in a Builder's profile can be read and changed while it grows, without the cost
// of Profile.

// Meta returns the profile's Meta.
func (b *Builder) Meta() *Meta { return &b.p.Meta }

// Threads returns the threads so far; their names may be changed in place.
func (b *Builder) Threads() []Thread { return b.p.Threads }

// Processes returns the processes so far, by the indices that AddProcess returned; they may be
// changed in place.
func (b *Builder) Processes() []Process { return b.p.Processes }

// AddProcess appends a process and returns its index.
func (b *Builder) AddProcess(p Process) int {
	b.p.Processes = append(b.p.Processes, p.plain())
	return len(b.p.Processes) - 1
}

// Funcs returns the functions so far.
func (b *Builder) Funcs() []Func { return b.p.Funcs }

// Frames returns the frames so far.
func (b *Builder) Frames() []Frame { return b.p.Frames }

// At returns a node of the trie.
func (b *Builder) At(node uint32) Node { return b.nodes.At(node) }

// Syscalls returns the names of system calls so far, as Profile.Syscalls are: one for each combination
// with labels.
func (b *Builder) Syscalls() []string { return b.p.Syscalls }

// Labels returns the labels of samples so far, as Profile.Labels are.
func (b *Builder) Labels() [][]Label { return b.p.Labels }
