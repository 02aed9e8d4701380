package kallsyms

// switching are the functions through which every thread that gives up its CPU does so. All stacks
// of sleeping threads would end in them.
var switching = map[string]bool{
	"__schedule": true, "schedule": true, "preempt_schedule": true, "preempt_schedule_common": true,
	"preempt_schedule_irq": true, "preempt_schedule_notrace": true,
}

// schedulerDepth is how many of the innermost frames may belong to the scheduler, or to code that
// observes it.
const schedulerDepth = 12

// BelowScheduler cuts the scheduler's own frames, and those of code that observes it, off a call
// chain of a thread that is not running, innermost first. The rest begins with the function that
// waits.
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

// maxSwitches bounds how many addresses are remembered, scheduler's or not.
const maxSwitches = 1 << 14
