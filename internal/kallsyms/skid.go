package kallsyms

import "github.com/candid-profiler/candid/internal/walk"

// enabling are the functions that only enable interrupts, or release a lock and enable them. A
// timer's interrupt that comes while interrupts are off is delivered there, so the time belongs to
// the code that ran before: to their callers.
//
// If enabling is inlined (cli and sti in native_irq_enable, msr daif on arm64), only the
// interrupted function itself is known, and it stays.
var enabling = map[string]bool{
	// PV_CALLEE_SAVE_REGS_THUNK (arch/x86/include/asm/paravirt.h) wraps each in a function of the
	// longer name.
	"pv_native_irq_enable":                   true, // arch/x86/kernel/paravirt.c
	"__raw_callee_save_pv_native_irq_enable": true,
	"xen_irq_enable":                         true, // arch/x86/xen/irq.c, to 5.16
	"__raw_callee_save_xen_irq_enable":       true,
	"xen_irq_enable_direct":                  true, // arch/x86/xen/xen-asm.S
	"xen_restore_fl_direct":                  true, // the same, to 5.15
	"native_irq_enable":                      true, // arch/x86/include/asm/irqflags.h, where it has an address: paravirt, to 5.16
	"native_restore_fl":                      true, // the same, to 5.14
	"pvm_irq_enable":                         true, // guests of PVM (pagetable virtual machine): seen in /proc/kallsyms of a 6.18
	"__raw_callee_save_pvm_irq_enable":       true,
	"arch_local_irq_enable":                  true, // include/asm-generic/irqflags.h, where it is not inlined
	"arch_local_irq_restore":                 true,
	// include/linux/spinlock_api_smp.h, rwlock_api_smp.h: they release, enable, and allow
	// preemption.
	"_raw_spin_unlock_irq":         true,
	"_raw_spin_unlock_irqrestore":  true,
	"_raw_read_unlock_irq":         true,
	"_raw_read_unlock_irqrestore":  true,
	"_raw_write_unlock_irq":        true,
	"_raw_write_unlock_irqrestore": true,
}

// MarkSkid marks the innermost frames of a stack, given innermost first, that only enable
// interrupts (walk.Skid), and reports whether there are any. It is for stacks sampled by a timer's
// interrupt: an interrupt that cannot be masked is delivered where it occurs. The outermost frame
// of a stack is never marked.
func (r *Resolver) MarkSkid(frames []walk.Frame) bool {
	if len(frames) < 2 || frames[0].Kind != walk.KindKernel {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for ; n < len(frames)-1 && frames[n].Kind == walk.KindKernel; n++ {
		pc := frames[n].PC
		if frames[n].Flags&walk.ReturnAddress != 0 {
			pc--
		}
		is, ok := r.enables[pc]
		if !ok {
			found, _, _ := r.lookup(pc)
			is = enabling[found.function]
			if r.enables == nil || len(r.enables) >= maxSwitches {
				r.enables = map[uint64]bool{}
			}
			r.enables[pc] = is
		}
		if !is {
			break
		}
		frames[n].Flags |= walk.Skid
	}
	return n > 0
}
