package perfscript

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// endless returns the same samples again and again, with other times, and regularly checks how much
// memory is in use.
type endless struct {
	n, rounds int
	block     string
	rest      string
	most      uint64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		if e.n == e.rounds {
			return 0, io.EOF
		}
		e.n++
		e.rest = fmt.Sprintf("java 11/%d %d.%06d: 1000000 cpu-clock: \n", 12+e.n%5, 1000+e.n/1000, e.n%1000*1000) + e.block
		if e.n%(e.rounds/20) == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			e.most = max(e.most, m.HeapAlloc)
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// TestLongTextInLittleMemory: memory is used for the content of the text, not for the text.
func TestLongTextInLittleMemory(t *testing.T) {
	var block strings.Builder
	for i := range 60 {
		fmt.Fprintf(&block, "\t%16x com.example.Class%d.method%d+0x%x (/tmp/perf-11.map)\n", 0x7f0000000000+i, i, i, i)
	}
	block.WriteString("\n")
	in := &endless{rounds: 20000, block: block.String()}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p, err := Read(in)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Samples) != in.rounds || len(p.Nodes) != 61 {
		t.Errorf("%d samples, %d nodes", len(p.Samples), len(p.Nodes))
	}
	// 80 MB of text.
	if used := int64(in.most) - int64(before.HeapAlloc); used > 8<<20 {
		t.Errorf("%d bytes in use while it was read", used)
	}
}
