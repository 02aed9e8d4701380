package hotspot

import (
	"testing"

	"github.com/candid-profiler/candid/internal/walk"
)

// benchVM opens a warm program and finds every piece of its code.
func benchVM(b *testing.B) (*VM, []*blob) {
	b.Helper()
	vm := openVM(b, startProgram(b, 17, "Parked"))
	var all []*blob
	eachBlob(b, vm, func(x *blob) { all = append(all, x) })
	return vm, all
}

// BenchmarkFind looks up code that is cached.
func BenchmarkFind(b *testing.B) {
	vm, all := benchVM(b)
	vm.BeginBatch()
	for _, x := range all {
		vm.find(x.start)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if x := all[i%len(all)]; vm.find(x.codeBegin) == nil && !x.dead {
			b.Fatal("lost a blob")
		}
		i++
	}
}

// BenchmarkBeginBatch checks all code that was used recently, as once a batch.
func BenchmarkBeginBatch(b *testing.B) {
	vm, all := benchVM(b)
	b.ReportMetric(float64(len(all)), "blobs")
	b.ReportAllocs()
	for b.Loop() {
		for _, x := range all {
			x.used = vm.Batch
		}
		vm.BeginBatch()
	}
	b.ReportMetric(float64(len(vm.code.recent)), "blobs")
}

func BenchmarkOpen(b *testing.B) {
	p := startProgram(b, 17, "Parked", "100")
	for b.Loop() {
		if _, err := Open(p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMethod(b *testing.B) {
	vm, all := benchVM(b)
	vm.BeginBatch()
	var m uint64
	for _, x := range all {
		if x.nm != nil && x.nm.methodID != 0 {
			m = x.nm.method
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := vm.method(m); !ok {
			b.Fatal("lost a method")
		}
	}
}

// BenchmarkResolve resolves a frame that was named before.
func BenchmarkResolve(b *testing.B) {
	vm, all := benchVM(b)
	vm.BeginBatch()
	var f walk.Frame
	for _, x := range all {
		if x.nm != nil && len(x.nm.pcs) > 3 {
			f = walk.Frame{PC: x.codeBegin, Ref: uint64(x.id)<<32 | 3, Kind: walk.KindC2}
		}
	}
	out := vm.Resolve(f, nil)
	b.ReportAllocs()
	for b.Loop() {
		out = vm.Resolve(f, out[:0])
	}
}
