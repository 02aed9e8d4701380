package emulate

// Code holds the decoded instructions of a process. It is not safe for concurrent use.
type Code struct {
	recent [1 << recentBits]*op
	all    map[uint64]*op
}

// Bounds of Code.
const (
	recentBits = 10
	maxOps     = 1 << 15
)

// NewCode returns a Code without instructions.
func NewCode() *Code { return &Code{all: map[uint64]*op{}} }

// Forget drops all instructions: the process's code has changed.
func (c *Code) Forget() {
	clear(c.all)
	c.recent = [1 << recentBits]*op{}
}

// at returns the instruction at pc; nil if it cannot be read.
func (c *Code) at(pc uint64, s Space) *op {
	slot := &c.recent[pc*0x9e3779b97f4a7c15>>(64-recentBits)]
	if *slot != nil && (*slot).pc == pc {
		return *slot
	}
	o, ok := c.all[pc]
	if !ok {
		var b [15]byte
		n := s.Code(pc, b[:])
		if n > 0 && n <= len(b) {
			o = opOf(b[:n], pc)
		}
		if len(c.all) >= maxOps {
			c.Forget()
		}
		c.all[pc] = o
	}
	if o != nil {
		*slot = o
	}
	return o
}
