package bpfcopy

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
)

// BenchmarkOpen measures how long it takes until the programs run: loading is most of what a user
// waits for before the first sample.
func BenchmarkOpen(b *testing.B) {
	for _, v := range []Variant{Exact, Sized} {
		b.Run(v.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e, err := Open(capture.Options{PIDs: []int{os.Getpid()}, Period: time.Millisecond}, v)
				if errors.Is(err, capture.ErrPermission) || errors.Is(err, capture.ErrUnsupported) {
					b.Skip(err)
				}
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
