package hostinfo

import (
	"os"
	"testing"
)

// BenchmarkNow and BenchmarkMemory measure one reading of the machine and of a process, which
// happens once a second.
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
