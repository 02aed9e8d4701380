package hotspot

import (
	"encoding/binary"
	"time"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

const (
	maxThreads = 100_000
	// refreshEvery is how old the list of threads may be when it is used.
	refreshEvery = 100 * time.Millisecond
	// refreshUnknown is how soon it is read again for a thread that is not in it.
	refreshUnknown = 10 * time.Millisecond
	// refreshShare limits the time spent reading the list to this fraction (1/n) of all time.
	refreshShare = 50
	// forgetNative is for how long a thread is taken not to be a Java thread.
	forgetNative = time.Second
)

// javaThread is one of the VM's threads.
type javaThread struct {
	addr   uint64 // JavaThread*
	object uint64 // _threadObj as stored: an oop or an OopHandle
	tid    uint32
}

// threadTable is the VM's threads as last read.
type threadTable struct {
	byTID  map[uint32]uint64
	native map[uint32]time.Time // not Java threads when last checked
	read   time.Time
	cost   time.Duration // of reading the list

	tids   *tidMap
	layout threadFields

	listField, length, array, head vmstructs.Field
	ok                             bool
}

func (vm *VM) openThreads() {
	t, s := vm.Tables, &vm.threads
	s.byTID = make(map[uint32]uint64)
	s.native = make(map[uint32]time.Time)
	s.listField = t.Field("ThreadsSMRSupport::_java_thread_list")
	s.length, s.array = t.Field("ThreadsList::_length"), t.Field("ThreadsList::_threads")
	s.head = t.Field("Threads::_thread_list")
	list := s.listField.OK && s.length.OK && s.array.OK || s.head.OK && vm.off.threadNext != absent
	if s.ok = list && vm.off.osThread != absent && vm.off.osThreadID != absent; !s.ok {
		vm.Note("the VM does not publish its list of threads: Java threads are not recognised")
	}
}

// javaThread returns the JavaThread of an operating system thread.
func (vm *VM) javaThread(tid uint32) (addr uint64, ok bool) {
	s := &vm.threads
	if !s.ok {
		return 0, false
	}
	now := time.Now()
	age, pause := now.Sub(s.read), refreshShare*s.cost
	addr, ok = s.byTID[tid]
	if ok && age < max(refreshEvery, pause) {
		return addr, true
	}
	if !ok {
		if since, native := s.native[tid]; native && now.Sub(since) < forgetNative {
			return 0, false
		}
		if age < max(refreshUnknown, pause) {
			return 0, false
		}
	}
	vm.refreshThreads()
	if addr, ok = s.byTID[tid]; !ok {
		if len(s.native) > maxThreads {
			clear(s.native)
		}
		s.native[tid] = now
	}
	return addr, ok
}

// refreshThreads reads the list of threads.
func (vm *VM) refreshThreads() {
	s := &vm.threads
	began := time.Now()
	list, _ := vm.listThreads()
	s.store(list)
	s.read = time.Now()
	s.cost = s.read.Sub(began)
}

// store replaces the known threads.
func (s *threadTable) store(list []javaThread) {
	clear(s.byTID)
	for _, t := range list {
		s.byTID[t.tid] = t.addr
	}
}

// listThreads reads the VM's Java threads, with the operating system's ids. whole is true only if
// nothing of the list was unreadable and every thread in it had its id: then a thread of the
// process that is not in the list is not a Java thread.
func (vm *VM) listThreads() (list []javaThread, whole bool) {
	s := &vm.threads
	if !s.ok {
		return nil, false
	}
	var addrs []uint64
	if s.listField.OK {
		addrs, whole = vm.threadArray()
	} else {
		seen := make(map[uint64]bool)
		at, ok := vm.Mem.Static(s.head)
		for ok && at != 0 && !seen[at] && len(addrs) < maxThreads {
			seen[at] = true
			addrs = append(addrs, at)
			at, ok = vm.Mem.U64(at + vm.off.threadNext)
		}
		whole = ok && at == 0
	}
	s.tids.refresh()
	// First every thread's OSThread and object, then the ids.
	n := len(addrs)
	buf := make([]byte, 20*n)
	reqs := make([]target.Read, 0, 2*n)
	for i, a := range addrs {
		b := buf[20*i:][:20]
		reqs = append(reqs, target.Read{Addr: a + vm.off.osThread, Buf: b[:8]})
		if vm.off.threadObj != absent {
			reqs = append(reqs, target.Read{Addr: a + vm.off.threadObj, Buf: b[8:16]})
		}
	}
	vm.Mem.ReadV(reqs)
	reqs = reqs[:0]
	for i := range addrs {
		b := buf[20*i:][:20]
		reqs = append(reqs, target.Read{Addr: vmstructs.Word(b, 0) + vm.off.osThreadID, Buf: b[16:20]})
	}
	vm.Mem.ReadV(reqs)
	out := make([]javaThread, 0, n)
	for i, a := range addrs {
		b := buf[20*i:][:20]
		tid := binary.LittleEndian.Uint32(b[16:])
		if !reqs[i].OK || vmstructs.Word(b, 0) == 0 || tid == 0 {
			whole = false
			continue // not started yet, or ended
		}
		tid, ok := s.tids.of(tid)
		if !ok {
			whole = false
			continue
		}
		out = append(out, javaThread{addr: a, tid: tid, object: vmstructs.Word(b, 8)})
	}
	return out, whole && len(out) > 0
}

// threadArray reads the current ThreadsList. Lists do not change but are replaced, so the pointer
// is read again. It returns false if none could be read.
func (vm *VM) threadArray() ([]uint64, bool) {
	s := &vm.threads
	for range 4 {
		list, ok := vm.Mem.Static(s.listField)
		n, ok1 := vm.Mem.Member(list, vmstructs.Field{OK: true, Offset: s.length.Offset, Width: 4})
		array, ok2 := vm.Mem.Member(list, s.array)
		if !ok || !ok1 || !ok2 || n > maxThreads {
			continue
		}
		raw := make([]byte, 8*n)
		if n > 0 && (array == 0 || vm.Mem.Reader.ReadAt(raw, array) != nil) {
			continue
		}
		if again, ok := vm.Mem.Static(s.listField); !ok || again != list {
			continue
		}
		out := make([]uint64, n)
		for i := range out {
			out[i] = binary.LittleEndian.Uint64(raw[8*i:])
		}
		return out, true
	}
	return nil, false
}

// ThreadNames returns the names of the Java threads, as Java knows them, by the
// operating system's thread id. A thread whose name cannot be told for sure is
// left out.
func (vm *VM) ThreadNames() map[int]string {
	names, _ := vm.AskThreads()
	return names
}

// AskThreads is ThreadNames; whole reports whether the VM reported all of its Java threads. It does
// not while it begins or ends, or when a thread is just starting; then nothing is known about
// threads that it did not report.
func (vm *VM) AskThreads() (names map[int]string, whole bool) {
	names = make(map[int]string)
	list, whole := vm.listThreads()
	if whole {
		vm.threads.store(list)
	}
	if vm.off.threadObj == absent || !vm.heap.OK {
		return names, whole
	}
	vm.heap.Begin()
	for _, t := range list {
		if name, ok := vm.steadyName(t); ok {
			names[int(t.tid)] = name
		}
	}
	return names, whole
}

// ThreadName is ThreadNames for one thread; false if it is not a Java thread or its name cannot be
// told for sure.
func (vm *VM) ThreadName(tid uint32) (string, bool) {
	addr, ok := vm.javaThread(tid)
	if !ok || vm.off.threadObj == absent || !vm.heap.OK {
		return "", false
	}
	object, ok := vm.Mem.U64(addr + vm.off.threadObj)
	if !ok {
		return "", false
	}
	vm.heap.Begin()
	return vm.steadyName(javaThread{addr: addr, object: object, tid: tid})
}

// steadyName reads a name again if the collector moved the object while it was
// read, which eetop shows.
func (vm *VM) steadyName(t javaThread) (string, bool) {
	for range 3 {
		if name, ok := vm.threadName(t); ok {
			return name, true
		}
	}
	return "", false
}
