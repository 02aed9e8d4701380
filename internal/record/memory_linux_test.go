package record

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"
)

func TestPeakMemory(t *testing.T) {
	debug.FreeOSMemory()
	before := PeakMemory()
	if before < 4<<20 || before > 4<<30 {
		t.Fatalf("this process holds %d bytes", before)
	}
	b := make([]byte, before-held(t)+80<<20) // memory held at the peak may have been freed by now
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	if after := PeakMemory(); after < before+64<<20 {
		t.Errorf("%d bytes with 64 MiB more in use than ever before, which were %d", after, before)
	}
	_ = b[0]
}

// held returns how many bytes this process holds now, by a different account from that of the peak.
func held(t *testing.T) uint64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident uint64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * uint64(os.Getpagesize())
}
