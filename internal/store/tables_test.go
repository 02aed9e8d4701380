package store

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// A Writer takes a bounded amount of memory on a day on which each half minute has code that was never seen before,
// and a reader finds all of it.
func TestTablesAreBounded(t *testing.T) {
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	dir := t.TempDir()
	w := create(t, dir, Options{})
	const parts, functions = 24, 10000
	most := uint64(0)
	for i := range parts {
		b := profile.NewBuilder()
		*b.Meta() = profile.Meta{Duration: 30 * time.Second}
		b.AddProcess(profile.Process{PID: 1, Command: "churn"})
		th := b.Thread(1, 1, "churn")
		for f := range functions {
			fn := b.Func(profile.Func{Name: fmt.Sprintf("a function of part %d with the number %d", i, f), Module: "churn"})
			node := b.Node(profile.RootNode, b.Frame(profile.Frame{Func: fn, Line: int32(f), BCI: -1, Kind: walk.KindNative}))
			b.Add(profile.Sample{Thread: th, Node: node, Weight: 1, State: profile.StateRunning, Time: uint64(f)})
		}
		p := b.Finish()
		p.Events = []profile.Event{{Name: "cpu", Unit: "nanoseconds", Kind: profile.EventCPU}}
		from := noon.Add(time.Duration(i) * 30 * time.Second)
		if err := w.Append(p, func(int) string { return "churn" }, from, from.Add(30*time.Second)); err != nil {
			t.Fatal(err)
		}
		if now := live(); now > before+most {
			most = now - before
		}
	}
	// The packer keeps some MB for its own.
	if most > maxTables+20<<20 {
		t.Errorf("the writer takes %d MB", most>>20)
	}
	if w.seg.n == 0 {
		t.Errorf("all is in one segment, whose tables take %d MB", w.seg.tables()>>20)
	}
	t.Logf("%d MB, %d segments", most>>20, w.seg.n+1)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Profile(Query{From: noon, To: noon.Add(time.Hour)})
	if err != nil || p.SampleCount() != parts*functions || len(p.Funcs) < parts*functions || len(r.Damage()) > 0 {
		t.Errorf("%d samples of %d functions, %v, %v", p.SampleCount(), len(p.Funcs), err, r.Damage())
	}
}
