package confine

import "golang.org/x/sys/unix"

// poke permits the one change of a register that candid makes: a system call that a stop has
// interrupted goes on, because its result becomes -ERESTARTNOHAND (capture/suspend, mend).
func poke(p *program) {
	const (
		rax     = 10 * 8 // the offset in struct user_regs_struct of arch/x86/include/asm/user_64.h
		restart = 514    // ERESTARTNOHAND, include/linux/errno.h
	)
	p.unless(unix.PTRACE_POKEUSR, deny)
	p.argument(2)
	p.unless(rax, deny)
	p.argument(3)
	p.when(-restart&0xffffffff, allow)
}
