package record

import (
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fileid"
)

// told passes the events in order, and returns the result for the last.
func (b *births) told(ns ...capture.ProcessEvent) (soon bool) {
	for i := range ns {
		soon = b.notice(&ns[i], time.Now())
	}
	return soon
}

func execOf(pid uint32) capture.ProcessEvent {
	return capture.ProcessEvent{Kind: capture.Exec, PID: pid, TID: pid}
}

func exitOf(pid uint32) capture.ProcessEvent {
	return capture.ProcessEvent{Kind: capture.Exit, PID: pid, TID: pid, Last: true}
}

// A program that begins is examined soon, as it may generate code, and one that has such code all
// the more.
func TestBirthsHurry(t *testing.T) {
	b := newBirths()
	if !b.told(execOf(1)) || !b.urgent(time.Now()) {
		t.Error("no urgency after an exec of which the file is not told")
	}
	b = newBirths()
	if !b.told(execOf(2), mapped(2, 0x5000, "/bin/gzip")) || time.Until(b.urgentUntil) <= 0 || time.Until(b.urgentUntil) > unclear {
		t.Errorf("urgent for %v after an exec", time.Until(b.urgentUntil))
	}
	if b.told(mapped(2, 0x7000, "/lib/libc.so")) {
		t.Error("a library is worth a look at once")
	}
	if !b.told(mapped(2, 0x9000, "")) || time.Until(b.urgentUntil) < youth/2 {
		t.Errorf("urgent for %v with generated code", time.Until(b.urgentUntil))
	}
	if !b.told(exitOf(2)) {
		t.Error("generated code is not looked at when its process ends")
	}
	if b.told(execOf(0)) || b.told(exitOf(0)) || b.running[0].at != (time.Time{}) {
		t.Error("what candid cannot see in its pid namespace is to be looked at")
	}
	if !b.told(exitOf(7)) {
		t.Error("a process of which nothing is known ends without a look")
	}
}

// The processes of a file predict what the next one will do: nobody hurries for a compiler's
// thousandth process, but always for a VM's.
func TestBirthsLearn(t *testing.T) {
	b := newBirths()
	for pid := uint32(1); pid <= plainAfter; pid++ {
		if !b.told(execOf(pid), mapped(pid, 0x5000, "/bin/cc1")) {
			t.Fatalf("process %d of an unknown program is not looked at", pid)
		}
		b.told(exitOf(pid))
	}
	b.urgentUntil = time.Time{}
	if b.told(execOf(50), mapped(50, 0x5000, "/bin/cc1")) || b.told(mapped(50, 0x8000, "/lib/libc.so")) ||
		b.told(capture.ProcessEvent{Kind: capture.Fork, PID: 51, TID: 51, Parent: 50}) || b.told(exitOf(51)) || b.told(exitOf(50)) || b.urgent(time.Now()) {
		t.Error("a program is looked at that is known to have code from files only")
	}
	// The prediction may be wrong: then the program is no longer ordinary.
	if !b.told(execOf(60), mapped(60, 0x5000, "/bin/cc1"), mapped(60, 0x9000, "")) || !b.told(exitOf(60)) {
		t.Error("an ordinary program that generates code is not looked at")
	}
	if !b.told(execOf(61), mapped(61, 0x5000, "/bin/cc1")) {
		t.Error("it was forgotten that a program generates code")
	}
	// A forked copy, and the end of a thread that is not the last, do not count.
	b = newBirths()
	b.told(execOf(1), mapped(1, 0x5000, "/bin/sh"))
	for pid := range uint32(10) {
		b.told(capture.ProcessEvent{Kind: capture.Fork, PID: 10 + pid, TID: 10 + pid, Parent: 1}, exitOf(10+pid), capture.ProcessEvent{Kind: capture.Exit, PID: 1, TID: 20 + pid})
	}
	if b.programs[fileid.Named{ID: fileid.ID{Inode: 1}, Path: "/bin/sh"}].ordinary() {
		t.Error("a program is ordinary of which none has ended")
	}
	// A VM that was running before is known by its code.
	b.generates(99)
	if !b.told(capture.ProcessEvent{Kind: capture.Exit, PID: 99, TID: 100}) {
		t.Error("threads of a VM end without a look")
	}
}

// However many processes and programs begin, what is known of them is bounded.
func TestBirthsBounded(t *testing.T) {
	b := newBirths()
	for pid := range uint32(3 * maxYoung) {
		m := mapped(pid, 0x5000, "/bin/x")
		m.Mapping.Inode = uint64(pid) + 1
		b.told(execOf(pid), m)
		if len(b.running) > maxYoung || len(b.programs) > maxPrograms {
			t.Fatalf("%d processes, %d programs", len(b.running), len(b.programs))
		}
	}
}
