package record

import (
	"os"
	"runtime"
	"testing"
	"weak"
)

// When recording has ended, nothing refers to what was known of the targets.
func TestLetGo(t *testing.T) {
	s := newSession(&Options{Log: func(string) {}})
	target := func() weak.Pointer[process] {
		p, err := s.openProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		s.procs[uint32(p.pid)] = p
		s.observe(true)
		return weak.Make(p)
	}()
	runtime.GC()
	if target.Value() == nil {
		t.Fatal("the process is gone before it was let go")
	}
	s.letGo()
	runtime.GC()
	if target.Value() != nil {
		t.Error("the process is still held")
	}
	runtime.KeepAlive(s)
}
