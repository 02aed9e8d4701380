package coreclr

import (
	"testing"

	"github.com/candid-profiler/candid/internal/clrdebug"
	"github.com/candid-profiler/candid/internal/symbol"
)

// TestInlinedCircle names inlined methods that are each other's parents: they are left out.
func TestInlinedCircle(t *testing.T) {
	in := &clrdebug.Inlines{Nodes: []clrdebug.Inlinee{{Parent: clrdebug.NoParent}, {Method: 8, Parent: 2}, {Method: 16, Parent: 1}}, Places: []clrdebug.Place{{Node: 1}}}
	vm := &VM{mem: &memoryImage{make([]byte, 64)}}
	if out, _, ok := vm.appendInlined(nil, &code{rich: true, inlines: in}, 0, &symbol.Frame{}); ok || len(out) != 0 {
		t.Errorf("they became %v", out)
	}
}
