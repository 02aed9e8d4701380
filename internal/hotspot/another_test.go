package hotspot

import (
	"encoding/binary"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/walk"
)

// A frame of the interpreter belongs to the Method that its slot points to only if its bytecode
// pointer is one of that Method's: the class of the frame may have been unloaded since.
func TestAnotherMethod(t *testing.T) {
	const base, fp = 0x8000, 0x8100
	for _, c := range []struct {
		name    string
		major   int
		native  bool
		bcp     uint64
		another bool
	}{
		{"first bytecode", 17, false, 0x5000, false},
		{"last bytecode", 17, false, 0x5013, false},
		{"behind the last", 17, false, 0x5014, true},
		{"elsewhere", 17, false, 0x9000, true},
		{"none yet", 17, false, 0, false},
		{"native", 17, true, 0x9000, false},
		{"an index while JDK 8 collects", 8, false, 7, false},
		{"an index later", 17, false, 7, true},
	} {
		vm := &VM{VM: vmstructs.VM{Major: c.major}}
		vm.methods.all = []*method{nil, {id: 1, codeBase: 0x5000, codeSize: 20, native: c.native}}
		s := slotsFor(cpu.AMD64, c.major)
		stack := make([]byte, 0x200)
		binary.LittleEndian.PutUint64(stack[slot(fp, s.bcp)-base:], c.bcp)
		cursor := &walk.Cursor{Copy: walk.StackCopy{Base: base, Bytes: stack}}
		if got := vm.another(cursor, s, fp, 1); got != c.another {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
