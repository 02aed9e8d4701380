package hotspot

import "strings"

// Object is an object of the Java heap. The collector may move it at any time.
type Object struct {
	Addr  uint64
	Class string // as people read it: java.util.concurrent.locks.ReentrantLock$NonfairSync, int[] is [I
}

// WaitKind says how a thread waits for an object.
type WaitKind uint8

// The kinds.
const (
	WaitsForNothing WaitKind = iota
	WaitsToLock              // the object's monitor, which another thread owns
	WaitsOn                  // Object.wait
	WaitsParked              // LockSupport.park with this blocker
)

// Wait is what a thread waits for.
type Wait struct {
	Kind   WaitKind
	Object Object
	Owner  uint32 // the thread that holds it; 0: none, or it cannot be told
}

// ThreadInfo is what the VM knows of one of its threads.
type ThreadInfo struct {
	State    ThreadState
	Name     string
	ID       int64 // java.lang.Thread.threadId
	Daemon   bool
	Priority int
	Kind     ThreadKind
	Wait     Wait
	Holds    []Object // whose monitors it owns, as far as the VM keeps account of that

	Compiling string // the method that a compiler thread is at: java.util.HashMap.get; "" for none
	Tier      int    // that it is compiled for: 1 to 4
	Loop      bool   // it is compiled to be entered in a loop (on-stack replacement)
}

// Thread reads what a thread is and does now; false if it is none of Java's. What
// could not be read for sure is left out.
func (c *Census) Thread(tid uint32) (info ThreadInfo, ok bool) {
	i, ok := c.byTID[tid]
	if !ok {
		return info, false
	}
	vm, t := c.vm, &c.threads[i]
	if vm.off.threadState != absent {
		if v, ok := vm.peek.u32(t.addr + vm.off.threadState); ok {
			info.State.VM = vmState(v)
		}
	}
	info.Kind = KindJava
	info.Holds = c.holds[tid]
	if vm.off.threadObj == absent || !vm.heap.ok {
		return info, true
	}
	vm.heap.refresh(&vm.peek)
	for range 3 { // the collector may move the object meanwhile
		if vm.readThread(&info, t) {
			break
		}
	}
	info.Kind = kindOfJava(info.Name)
	if info.Kind == KindCompiler {
		vm.compiling(&info, t.addr)
	}
	c.wait(&info, t)
	return info, true
}

// readThread reads a thread's object; false unless it points back to the thread, before
// and after.
func (vm *VM) readThread(info *ThreadInfo, t *censusThread) bool {
	status, ok := vm.threadStatus(t.addr, t.object)
	if !ok {
		return false
	}
	oop, ok := vm.handle(t.object)
	f := vm.threadLayout(oop)
	if !ok || !f.ok {
		return false
	}
	info.State.Java = javaStates[status]
	info.Name, _ = vm.threadName(t.javaThread)
	if f.id != absent {
		info.ID, _ = vm.i64(oop + f.id)
	}
	in := oop
	if f.holder != absent {
		if in, ok = vm.reference(oop + f.holder); !ok {
			return false
		}
	}
	if f.prio != absent {
		p, _ := vm.i32(in + f.prio)
		info.Priority = int(p)
	}
	if f.daemon != absent {
		d, _ := vm.peek.u8(in + f.daemon)
		info.Daemon = d != 0
	}
	back, ok := vm.peek.u64(oop + f.eetop)
	return ok && back == t.addr
}

// object gives an object with the name of its class; false if what is there is
// none.
func (vm *VM) object(oop uint64) (Object, bool) {
	if oop == 0 || oop&7 != 0 {
		return Object{}, false
	}
	klass, ok := vm.klassOf(oop)
	if !ok || klass == 0 || klass&7 != 0 {
		return Object{}, false
	}
	name := vm.className(klass)
	if name == "" {
		return Object{}, false
	}
	_, exact := className(name)
	return Object{Addr: oop, Class: printable(exact)}, true
}

// weakSince is the release in which an ObjectMonitor began to keep its object by
// a WeakHandle (16 share/runtime/objectMonitor.hpp).
const weakSince = 16

// monitorObject is the object that a monitor belongs to.
func (vm *VM) monitorObject(monitor uint64) (Object, bool) {
	v, ok := vm.peek.member(monitor, vm.t.field("ObjectMonitor::_object"))
	if !ok || v == 0 {
		return Object{}, false
	}
	if vm.major >= weakSince {
		if v, ok = vm.peek.u64(v); !ok || v == 0 {
			return Object{}, false
		}
	}
	return vm.object(vm.heap.address(v))
}

// wait finds what a thread waits for.
func (c *Census) wait(info *ThreadInfo, t *censusThread) {
	vm, w := c.vm, &info.Wait
	monitor := func(off uint64) (uint64, bool) {
		if off == absent {
			return 0, false
		}
		m, ok := vm.peek.u64(t.addr + off)
		return m, ok && m != 0
	}
	if m, ok := monitor(vm.off.pendingMonitor); ok && info.State.Java != JavaRunnable {
		if o, ok := vm.monitorObject(m); ok {
			*w = Wait{WaitsToLock, o, c.owner(m, o)}
		}
		return
	}
	if m, ok := monitor(vm.off.waitingMonitor); ok {
		if o, ok := vm.monitorObject(m); ok {
			*w = Wait{WaitsOn, o, c.owner(m, o)}
			if info.State.Java == JavaBlocked { // it was notified and wants the lock back
				w.Kind = WaitsToLock
			}
		}
		return
	}
	if info.State.Java != JavaParked && info.State.Java != JavaTimedParked {
		return
	}
	oop, ok := vm.handle(t.object)
	if !ok || vm.heap.thread.parkBlocker == absent {
		return
	}
	blocker, ok := vm.reference(oop + vm.heap.thread.parkBlocker)
	if !ok {
		return
	}
	if o, ok := vm.object(blocker); ok {
		*w = Wait{WaitsParked, o, c.exclusiveOwner(blocker)}
	}
}

// exclusiveOwner is the thread that holds a lock of java.util.concurrent, by the
// field that AbstractOwnableSynchronizer keeps it in; 0 if the object is none or
// nobody holds it.
func (c *Census) exclusiveOwner(oop uint64) uint32 {
	f, ok := c.vm.fieldOf(oop, "exclusiveOwnerThread")
	if !ok || f.signature != "Ljava/lang/Thread;" {
		return 0
	}
	owner, ok := c.vm.reference(oop + f.offset)
	if !ok {
		return 0
	}
	addr, ok := c.vm.peek.u64(owner + c.vm.heap.thread.eetop)
	if !ok {
		return 0
	}
	return c.byAddr[addr]
}

// compiling finds what a compiler thread is at.
func (vm *VM) compiling(info *ThreadInfo, thread uint64) {
	t := vm.t
	if vm.off.compilerEnv == absent {
		return
	}
	env, ok := vm.peek.u64(thread + vm.off.compilerEnv)
	if !ok || env == 0 {
		return
	}
	task, ok := vm.peek.member(env, t.field("ciEnv::_task"))
	if !ok || task == 0 {
		return
	}
	ptr, ok := vm.peek.member(task, t.field("CompileTask::_method"))
	if !ok {
		return
	}
	id, ok := vm.method(ptr)
	m := vm.methodAt(id)
	tier, ok2 := vm.peek.member(task, field{ok: true, offset: t.field("CompileTask::_comp_level").offset, width: 4})
	if !ok || !ok2 || m == nil || tier > 4 {
		return
	}
	info.Compiling, info.Tier = m.function, int(tier)
	if bci, ok := vm.i32(task + t.field("CompileTask::_osr_bci").offset); ok && t.field("CompileTask::_osr_bci").ok {
		info.Loop = bci >= 0
	}
}

// ThreadKind says what a thread of a Java process is for.
type ThreadKind uint8

// The kinds.
const (
	KindNative   ThreadKind = iota // not the VM's, as far as can be told
	KindJava                       // runs Java code
	KindCompiler                   // compiles it
	KindGC                         // collects garbage
	KindVM                         // does something else for the VM
)

var threadKinds = [...]string{"native", "java", "compiler", "gc", "vm"}

// String names the kind for people and files.
func (k ThreadKind) String() string {
	if int(k) < len(threadKinds) {
		return threadKinds[k]
	}
	return threadKinds[KindNative]
}

// namedThreads are how the VM calls its own threads: those in its list of Java
// threads by their Java name, the others by what the kernel shows of their name.
// From 26 on it takes the middle out of a name that is too long for the kernel
// (os/linux/os_linux.cpp), so seven letters must do.
var namedThreads = []struct {
	prefix string
	kind   ThreadKind
}{
	{"C1 Comp", KindCompiler}, {"C2 Comp", KindCompiler}, {"JVMCI", KindCompiler}, {"C1 Dyna", KindCompiler}, {"C2 Dyna", KindCompiler},
	{"GC Thre", KindGC}, {"GC task", KindGC}, {"G1 ", KindGC}, {"Gang wo", KindGC}, {"Concurr", KindGC}, {"ParGC", KindGC},
	{"Surroga", KindGC}, {"ZDriver", KindGC}, {"ZWorker", KindGC}, {"ZDirect", KindGC}, {"ZStat", KindGC}, {"ZUncomm", KindGC},
	{"ZUnmapp", KindGC}, {"XDriver", KindGC}, {"XWorker", KindGC}, {"XDirect", KindGC}, {"XStat", KindGC}, {"XUncomm", KindGC},
	{"XUnmapp", KindGC}, {"Shenand", KindGC}, {"StrDedup", KindGC}, {"RuntimeWorker", KindGC}, {"Epsilon", KindGC},
	{"VM Thre", KindVM}, {"VM Peri", KindVM}, {"Signal Dispatcher", KindVM}, {"Service Thread", KindVM}, {"Monitor Deflation Thread", KindVM},
	{"Notification Thread", KindVM}, {"Attach Listener", KindVM}, {"JFR Sam", KindVM}, {"JFR Peri", KindVM}, {"AsyncLo", KindVM},
}

// kindOfJava tells a thread in the VM's list from the program's own: only names
// that the VM gives are believed to be its.
func kindOfJava(name string) ThreadKind {
	for _, n := range namedThreads {
		switch {
		case n.kind == KindCompiler && strings.HasPrefix(name, n.prefix) && strings.Contains(name, "Compiler"):
			return KindCompiler
		case n.kind == KindVM && name == n.prefix:
			return KindVM
		}
	}
	return KindJava
}

// KindOfThread says what a thread is for; comm is what the kernel calls it.
func (vm *VM) KindOfThread(tid uint32, comm string) ThreadKind {
	if _, ok := vm.javaThread(tid); ok {
		if name, ok := vm.ThreadName(tid); ok {
			return kindOfJava(name)
		}
		return KindJava
	}
	return kindOfNative(comm)
}

func kindOfNative(comm string) ThreadKind {
	for _, n := range namedThreads {
		if strings.HasPrefix(comm, n.prefix) {
			return n.kind
		}
	}
	return KindNative
}
