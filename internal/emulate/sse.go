package emulate

// sse executes an instruction on vector registers.
func (m *Machine) sse(o *op) {
	a := &o.args[0]
	if a.kind == vector {
		m.knownX[a.reg], m.lateX = 0, m.lateX&^(1<<a.reg)
		return
	}
	m.guard(o)
}
