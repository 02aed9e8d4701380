package coreclr_test

import (
	"testing"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/oracle"
	"github.com/candid-profiler/candid/internal/walk"
)

// BenchmarkWalk walks the same stack of 50 managed frames again and again, without the cache of
// whole stacks.
func BenchmarkWalk(b *testing.B) {
	target := fixture.Start(b, fixture.DotNetCommand(b, 9, fixture.CSharp(b, 9, "testdata/Deep.cs")))
	target.Await("ready")
	p, err := attach.Open(target.PID(), native.NewFiles())
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	tr, err := oracle.Attach(target.PID())
	if err != nil {
		b.Skip(err)
	}
	defer tr.Detach()
	var snap capture.Snapshot
	var st walk.Stack
	for range 10000 { // until it is deep down
		tr.Snapshot(&snap, 1<<16)
		p.Walker.Walk(&snap, p.Target.Memory(), &st)
		if len(st.Frames) > 50 && st.End == walk.EndComplete {
			break
		}
		if err := tr.Step(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Walker.Walk(&snap, p.Target.Memory(), &st)
	}
	b.ReportMetric(float64(len(st.Frames)), "frames")
}
