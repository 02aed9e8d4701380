package java

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/hotspot/threads"
	"github.com/candid-profiler/candid/internal/runtimes"
)

// threadDump adapts the VM's threads to package runtimes.
type threadDump struct{ *threads.Dump }

var _ runtimes.ThreadDump = threadDump{}

// DumpThreads implements runtimes.ThreadDumper.
func (i *instance) DumpThreads() runtimes.ThreadDump { return threadDump{i.VM.DumpThreads()} }

// Kind implements runtimes.ThreadDump.
func (d threadDump) Kind(tid uint32, comm string) string {
	return d.Dump.Kind(tid, comm).String()
}

// Thread implements runtimes.ThreadDump.
func (d threadDump) Thread(tid uint32) (s runtimes.ThreadState, ok bool) {
	info, ok := d.Dump.Thread(tid)
	if !ok {
		return s, false
	}
	w := &info.Wait
	s = runtimes.ThreadState{
		Kind: info.Kind.String(), ID: info.ID, Daemon: info.Daemon, Priority: info.Priority,
		State: info.State.Java.String(), VMState: info.State.VM.String(), Compiling: info.Compiling, Tier: info.Tier,
		Wait: runtimes.Wait{Kind: waitKinds[w.Kind], Object: runtimes.Object(w.Object), Owner: w.Owner, Virtual: runtimes.Virtual(w.Virtual)},
	}
	if info.State.Java == threads.JavaRunnable {
		s.State = runtimes.StateRunnable
	}
	if info.State.VM == threads.VMBlocked {
		s.VMState = runtimes.VMBlocked
	}
	if id, name, ok := d.Virtual(tid); ok {
		s.Virtual = runtimes.Virtual{ID: id, Name: name}
	}
	return s, true
}

var waitKinds = [...]runtimes.WaitKind{
	threads.WaitsForNothing: runtimes.WaitsForNothing, threads.WaitsToLock: runtimes.WaitsToLock,
	threads.WaitsOn: runtimes.WaitsOn, threads.WaitsParked: runtimes.WaitsParked,
}

// Holds implements runtimes.ThreadDump.
func (d threadDump) Holds(tid uint32) []runtimes.Object {
	held := d.Dump.Holds(tid)
	if len(held) == 0 {
		return nil
	}
	out := make([]runtimes.Object, len(held))
	for i, o := range held {
		out[i] = runtimes.Object(o)
	}
	return out
}

// Hides implements runtimes.ThreadDump.
func (d threadDump) Hides(pid int) string {
	if !d.Carriers() {
		return ""
	}
	return fmt.Sprintf("virtual threads are shown only while they are mounted; there may be others, which 'jcmd %d Thread.dump_to_file FILE' writes down", pid)
}

// Pause implements runtimes.ThreadDumper: a pause is the VM's safepoint.
func (i *instance) Pause(d runtimes.ThreadDump) (*runtimes.Pause, error) {
	s, err := i.Safepoint()
	if err != nil {
		return nil, fmt.Errorf("safepoints are not seen: %w", err)
	}
	if s.State == threads.SafepointNone {
		return nil, nil
	}
	p := &runtimes.Pause{State: s.State.String(), Operation: s.Operation, Since: s.Since}
	if t, ok := d.(threadDump); ok && s.State == threads.Synchronizing {
		p.WaitsFor = t.InJava()
	}
	return p, nil
}
