package hotspot

import (
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestProvedNames names all places of compiled methods again and again: what was read while an
// nmethod was there is not read again as long as it is, and whatever is read anew counts only if the
// nmethod is still there after that.
func TestProvedNames(t *testing.T) {
	vm := openStopped(t)
	mem := &changed{Reader: vm.Mem.Reader, words: map[uint64]uint64{}}
	vm.Mem.Reader = mem
	vm.BeginBatch()
	var all []*blob
	eachBlob(t, vm, func(b *blob) {
		if b.kind == blobNMethod && len(b.nm.pcs) > 2 && len(all) < 40 {
			all = append(all, b)
		}
	})
	// name names every place of b; taken is how many reads that took.
	name := func(b *blob) (out []symbol.Frame, taken int) {
		clear(vm.names.cache)
		before := mem.reads
		for i := range b.nm.pcs {
			if ref := refOf(b, i); uint32(ref) != 0 {
				out = vm.Resolve(walk.Frame{PC: b.codeBegin, Ref: ref, Kind: walk.KindC2}, out)
			}
		}
		return out, mem.reads - before
	}
	want := make([][]symbol.Frame, len(all))
	inlined := 0
	for i, b := range all {
		want[i], _ = name(b)
		for _, f := range want[i] {
			if f.NoName {
				t.Fatalf("%s has no name", f.Function)
			}
			if f.Kind == walk.KindInlined {
				inlined++
			}
		}
	}
	if len(all) == 0 || inlined == 0 {
		t.Fatalf("%d methods, %d frames inlined in them", len(all), inlined)
	}
	for batch := range 3 {
		vm.BeginBatch()
		for i, b := range all {
			if vm.find(b.start) != b {
				t.Fatal("code that has not changed is not found")
			}
			got, taken := name(b)
			if !slices.Equal(got, want[i]) {
				t.Errorf("batch %d: names of %s differ", batch, want[i][0].Function)
			}
			if batch > 0 && taken > 0 {
				t.Errorf("batch %d: %d reads for names that were known", batch, taken)
			}
		}
	}
	// The nmethod is replaced in the middle of a batch. Nothing that is read after that is used.
	// The method that it was compiled from is known without its scopes, so it has to have another.
	at := slices.IndexFunc(want, func(names []symbol.Frame) bool {
		return slices.ContainsFunc(names, func(f symbol.Frame) bool {
			return f.Kind == walk.KindInlined && f.Function != names[len(names)-1].Function
		})
	})
	if at < 0 {
		t.Fatal("no method has another one inlined")
	}
	b := all[at]
	l := &vm.code.layout
	for what, forget := range map[string]func(){
		"its methods": func() {
			b.nm.scopes.proved = nil
			vm.methods.byPtr = map[uint64]uint32{}
			vm.methods.near = [nearMethods]nearMethod{}
		},
		"their lines": func() {
			for _, id := range b.nm.scopes.proved {
				if m := vm.methodAt(id); m != nil {
					m.linesRead, m.lines = false, nil
				}
			}
		},
		"its scopes": func() { b.nm.scopes = nil },
	} {
		clear(mem.words)
		vm.BeginBatch()
		if b = vm.find(b.start); b == nil {
			t.Fatal("code that has not changed is not found")
		}
		name(b)
		vm.BeginBatch()
		if vm.find(b.start) != b {
			t.Fatal("code that has not changed is not found")
		}
		name(b)
		mem.words[b.start+l.name.Offset] = 8
		forget()
		got, _ := name(b)
		if i := slices.IndexFunc(got, func(f symbol.Frame) bool { return f.Kind == walk.KindInlined }); i >= 0 {
			t.Errorf("%s were read from an nmethod that is there no more: %s", what, got[i].Function)
		}
		if !b.dead {
			t.Errorf("%s were read, and nobody has noticed that the nmethod is there no more", what)
		}
	}
}
