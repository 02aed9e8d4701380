package hotspot

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// archive is the code in the class data archive (classes.jsa), through which methods of archived
// classes are entered. From JDK 17 on the archive holds no code.
type archive struct{ lo, hi uint64 }

func (a archive) contains(pc uint64) bool { return pc-a.lo < a.hi-a.lo }

// archiveIn finds the archive's code among the mappings; it stays where it is.
func archiveIn(maps []target.Mapping) archive {
	i := slices.IndexFunc(maps, func(m target.Mapping) bool {
		return m.Perm&target.PermExec != 0 && strings.HasSuffix(m.Path, ".jsa")
	})
	if i < 0 {
		return archive{}
	}
	return archive{maps[i].Start, maps[i].End}
}

// trampoline is mov r10,target; jmp r10 (11 cpu/x86/sharedRuntime_x86_64.cpp,
// generate_trampoline).
var trampoline = [2][]byte{{0x49, 0xBA}, {0x41, 0xFF, 0xE2}}

// stepTrampoline steps over the archive's code. A thread only jumps through it, so the return
// address lies where the jump's target expects it.
func (vm *VM) stepTrampoline(c *walk.Cursor) walk.Verdict {
	vm.push(c, c.Regs.PC, 0, walk.KindStub, walk.Exact, 0)
	at, jump := c.Regs.PC, uint64(len(trampoline[0])+8)
	code := c.Code(at, len(trampoline[1]))
	if bytes.Equal(code, trampoline[1]) {
		at -= jump
	}
	code = c.Code(at, int(jump)+len(trampoline[1]))
	if code == nil || !bytes.HasPrefix(code, trampoline[0]) || !bytes.HasSuffix(code, trampoline[1]) {
		return walk.Stuck
	}
	to := binary.LittleEndian.Uint64(code[len(trampoline[0]):])
	sp, sender := c.Regs.SP(), senderSP(c)
	ra, ok := c.Word(sp)
	if !ok || !vm.validRA(ra) {
		return walk.Stuck
	}
	vm.enter(c, ra, sp+8, c.Regs.FP())
	if vm.inInterpreter(to) {
		// An adapter has been passed already, if the caller is compiled.
		vm.unextend(c, sender)
	}
	return walk.Stepped
}
