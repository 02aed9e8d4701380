package record

import (
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
)

func mapped(pid uint32, start uint64, path string) capture.ProcessEvent {
	m := target.Mapping{Start: start, End: start + 0x1000, Perm: target.PermRead | target.PermExec, Path: path}
	if path != "" {
		m.Inode = 1
	}
	return capture.ProcessEvent{Kind: capture.Mmap, PID: pid, TID: pid, Mapping: m}
}

func TestSpaces(t *testing.T) {
	s := newSpaces()
	tell := func(ns ...capture.ProcessEvent) {
		for i := range ns {
			s.notice(&ns[i])
		}
	}
	tell(capture.ProcessEvent{Kind: capture.Exec, PID: 1, TID: 1}, mapped(1, 0x1000, "/bin/sh"),
		capture.ProcessEvent{Kind: capture.Fork, PID: 2, TID: 2, Parent: 1})
	if sp := s.Of(2); sp == nil || len(sp.Mappings()) != 1 || !sp.Whole || sp.Program != "/bin/sh" {
		t.Fatalf("after the fork: %+v", sp)
	}
	tell(capture.ProcessEvent{Kind: capture.Exec, PID: 2, TID: 2}, mapped(2, 0x5000, "/bin/gzip"), mapped(2, 0x7000, "/lib/libc.so"))
	if sp := s.Of(2); len(sp.Mappings()) != 2 || sp.Program != "/bin/gzip" || len(s.Of(1).Mappings()) != 1 {
		t.Fatalf("after the exec: %+v", sp)
	}
	// If another process's mappings are lost, all processes become uncertain.
	tell(capture.ProcessEvent{Kind: capture.Mmap})
	if s.Of(1).Whole || s.Of(2).Whole {
		t.Error("still whole")
	}
	// A process that has ended is kept for a while, and one that reuses its PID is kept.
	tell(capture.ProcessEvent{Kind: capture.Exit, PID: 2, TID: 2, Last: true}, capture.ProcessEvent{Kind: capture.Exit, PID: 1, TID: 1, Last: true},
		capture.ProcessEvent{Kind: capture.Fork, PID: 2, TID: 2, Parent: 7})
	s.sweep(time.Now())
	if s.Of(1) == nil {
		t.Error("forgotten at once")
	}
	s.sweep(time.Now().Add(lateSamples + time.Second))
	if s.Of(1) != nil || s.Of(2) == nil || len(s.ended) != 0 {
		t.Errorf("after the sweep: %v %v, %d wait", s.Of(1), s.Of(2), len(s.ended))
	}
}

// However many processes come, what is known of them is bounded.
func TestSpacesBounded(t *testing.T) {
	s := newSpaces()
	for pid := range uint32(3 * target.MaxSpaces) {
		s.notice(&capture.ProcessEvent{Kind: capture.Exec, PID: pid, TID: pid})
		if s.Len() > target.MaxSpaces {
			t.Fatalf("%d spaces", s.Len())
		}
	}
}
