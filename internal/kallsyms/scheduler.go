package kallsyms

// switching are the functions by which every thread that gives up its CPU does
// so. All stacks of sleeping threads would end in them.
var switching = map[string]bool{
	"__schedule": true, "schedule": true, "preempt_schedule": true, "preempt_schedule_common": true,
	"preempt_schedule_irq": true, "preempt_schedule_notrace": true,
}

// schedulerDepth is how many of the innermost frames may be the scheduler's, or
// of what watches it.
const schedulerDepth = 12

// BelowScheduler cuts the scheduler's own frames, and those of whoever watches
// it, off a call chain of a thread that is not running, innermost first. What is
// left begins with the function that waits.
func (r *Resolver) BelowScheduler(chain []uint64) []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	cut := 0
	for i, pc := range chain[:min(schedulerDepth, len(chain))] {
		is, ok := r.switches[pc]
		if !ok {
			n, _, _ := r.lookup(pc - 1)
			is = switching[n.function]
			if r.switches == nil || len(r.switches) >= maxSwitches {
				r.switches = map[uint64]bool{}
			}
			r.switches[pc] = is
		}
		if is {
			cut = i + 1
		}
	}
	return chain[cut:]
}

// maxSwitches bounds how many places are remembered, scheduler's or not.
const maxSwitches = 1 << 14
