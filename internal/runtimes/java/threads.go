package java

import "github.com/candid-profiler/candid/internal/hotspot/threads"

// afterMain is HotSpot's name for a program's first thread once its main method has returned
// (jni_DestroyJavaVM in prims/jni.cpp). All that the thread did before was done under another name,
// which stays.
const afterMain = "DestroyJavaVM"

// Passing implements runtimes.ThreadNamer.
func (i *instance) Passing(name string) bool { return name == afterMain }

// ThreadKind implements runtimes.ThreadNamer.
func (i *instance) ThreadKind(tid uint32, name, comm string, whole bool) string {
	return i.VM.ThreadKind(tid, name, comm, whole).String()
}

// RunnerKind implements runtimes.ThreadNamer.
func (i *instance) RunnerKind(comm string) string { return threads.KindOfJavaComm(comm).String() }

// WaitsForLock implements runtimes.LockWaiter.
func (i *instance) WaitsForLock(tid uint32) (waits, ok bool) {
	s, ok := i.ThreadState(tid)
	if !ok || s.Java == threads.JavaUnknown {
		return false, false
	}
	return s.Java == threads.JavaBlocked, true
}
