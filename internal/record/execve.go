package record

import "github.com/candid-profiler/candid/internal/walk"

// becoming are the kernel's functions in which a process has given up its program and has no new
// one yet, or never will (fs/exec.c, fs/binfmt_elf.c, kernel/exit.c). Some of them are inlined.
var becoming = map[string]bool{"do_exit": true, "bprm_execve": true, "exec_binprm": true, "search_binary_handler": true, "load_elf_binary": true, "begin_new_exec": true}

// execs checks whether a stack could not be read because its thread has none in user space: its
// program is being replaced, or torn down. Such a stack is cut to its kernel frames and marked
// complete.
func (in *interner) execs(st *walk.Stack) {
	if st.End != walk.EndUnread {
		return
	}
	kernel, found := 0, false
	for i := range st.Frames {
		f := &st.Frames[i]
		if f.Kind != walk.KindKernel {
			break
		}
		kernel++
		if at, ok := in.physical(in.key(f), f); ok {
			for _, id := range in.standsFor(at) {
				found = found || becoming[in.b.Funcs()[in.b.Frames()[id].Func].Name]
			}
		}
	}
	if found {
		st.Frames, st.End = st.Frames[:kernel], walk.EndComplete
	}
}
