package hostinfo

import (
	"os"
	"testing"
)

// BenchmarkNow and BenchmarkMemory are what a look at the machine and at a process takes,
// once a second.
func BenchmarkNow(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Now(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMemory(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Memory(os.Getpid()); err != nil {
			b.Fatal(err)
		}
	}
}
