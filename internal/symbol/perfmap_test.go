package symbol

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A perf map that has no lines, however large it claims to be, is read once and in small pieces.
func TestSparsePerfMap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "perf-1.map")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(100 << 30); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	m := &perfMap{open: func() (*os.File, error) { return os.Open(path) }}
	begun := threadTime()
	for i := range 100 {
		before := m.read
		m.refresh()
		if m.read-before > mostPerfRead || m.read > maxPerfMap {
			t.Fatalf("%d bytes were read at once, %d in all", m.read-before, m.read)
		}
		if i == 50 && m.read != maxPerfMap {
			t.Fatalf("after 50 looks it is still read: the first %d bytes", m.read)
		}
	}
	// 100 times 16 MB would be 1.6 GB.
	if took := threadTime() - begun; took > 2*time.Second {
		t.Errorf("it took %v of CPU time", took)
	}
}
