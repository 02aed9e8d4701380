package threads

import (
	"encoding/binary"
	"time"

	"github.com/candid-profiler/candid/internal/hotspot/metadata"
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

// Thread is one of the VM's threads.
type Thread struct {
	Addr   uint64 // JavaThread*
	object uint64 // _threadObj as stored: an oop or an OopHandle
	TID    uint32 // the operating system's id, as we know it
}

// Threads is the VM's threads, as last read. It is used from one goroutine.
type Threads struct {
	vm   *vmstructs.VM
	heap *metadata.Heap
	off  offsets

	byTID  map[uint32]uint64
	native map[uint32]time.Time // not Java threads when last checked
	read   time.Time
	cost   time.Duration // of reading the list

	tids       *tidMap
	layout     objectLayout
	methodName func(ptr uint64) (string, bool) // the name of the Method there

	safepoint      safepointVars
	safepointTried bool
	safepointErr   error

	listField, length, array, head vmstructs.Field
	ok                             bool
}

// New finds how a VM lists its threads. What does not work is noted there. methodName returns
// the name of the Method at an address; false if there is none.
func New(vm *vmstructs.VM, heap *metadata.Heap, methodName func(ptr uint64) (string, bool)) *Threads {
	t, s := vm.Tables, &Threads{vm: vm, heap: heap, methodName: methodName}
	s.off = vmstructs.Offsets(vm, offsetRows)
	s.byTID = make(map[uint32]uint64)
	s.native = make(map[uint32]time.Time)
	s.listField = t.Field("ThreadsSMRSupport::_java_thread_list")
	s.length, s.array = t.Field("ThreadsList::_length"), t.Field("ThreadsList::_threads")
	s.head = t.Field("Threads::_thread_list")
	list := s.listField.OK && s.length.OK && s.array.OK || s.head.OK && s.off.threadNext != vmstructs.Absent
	if s.ok = list && s.off.osThread != vmstructs.Absent && s.off.osThreadID != vmstructs.Absent; !s.ok {
		vm.Note("the VM does not publish its list of threads: Java threads are not recognised")
	}
	if vm.Process != nil {
		s.tids = newTIDMap(vm.Process, vm.File)
	}
	return s
}

// JavaThread returns the address of the JavaThread of an operating system thread.
func (s *Threads) JavaThread(tid uint32) (addr uint64, ok bool) {
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
	s.refresh()
	if addr, ok = s.byTID[tid]; !ok {
		if len(s.native) > maxThreads {
			clear(s.native)
		}
		s.native[tid] = now
	}
	return addr, ok
}

// refresh reads the list of threads.
func (s *Threads) refresh() {
	began := time.Now()
	list, _ := s.List()
	s.store(list)
	s.read = time.Now()
	s.cost = s.read.Sub(began)
}

// store replaces the known threads.
func (s *Threads) store(list []Thread) {
	clear(s.byTID)
	for _, t := range list {
		s.byTID[t.TID] = t.Addr
	}
}

// List reads the VM's Java threads, with the operating system's ids. whole is true only if
// nothing of the list was unreadable and every thread in it had its id: then a thread of the
// process that is not in the list is not a Java thread.
func (s *Threads) List() (list []Thread, whole bool) {
	if !s.ok {
		return nil, false
	}
	var addrs []uint64
	if s.listField.OK {
		addrs, whole = s.threadArray()
	} else {
		seen := make(map[uint64]bool)
		at, ok := s.vm.Mem.Static(s.head)
		for ok && at != 0 && !seen[at] && len(addrs) < maxThreads {
			seen[at] = true
			addrs = append(addrs, at)
			at, ok = s.vm.Mem.U64(at + s.off.threadNext)
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
		reqs = append(reqs, target.Read{Addr: a + s.off.osThread, Buf: b[:8]})
		if s.off.threadObj != vmstructs.Absent {
			reqs = append(reqs, target.Read{Addr: a + s.off.threadObj, Buf: b[8:16]})
		}
	}
	s.vm.Mem.ReadV(reqs)
	reqs = reqs[:0]
	for i := range addrs {
		b := buf[20*i:][:20]
		reqs = append(reqs, target.Read{Addr: vmstructs.Word(b, 0) + s.off.osThreadID, Buf: b[16:20]})
	}
	s.vm.Mem.ReadV(reqs)
	out := make([]Thread, 0, n)
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
		out = append(out, Thread{Addr: a, TID: tid, object: vmstructs.Word(b, 8)})
	}
	return out, whole && len(out) > 0
}

// threadArray reads the current ThreadsList. Lists do not change but are replaced, so the pointer
// is read again. It returns false if none could be read.
func (s *Threads) threadArray() ([]uint64, bool) {
	for range 4 {
		list, ok := s.vm.Mem.Static(s.listField)
		n, ok1 := s.vm.Mem.Member(list, vmstructs.Field{OK: true, Offset: s.length.Offset, Width: 4})
		array, ok2 := s.vm.Mem.Member(list, s.array)
		if !ok || !ok1 || !ok2 || n > maxThreads {
			continue
		}
		raw := make([]byte, 8*n)
		if n > 0 && (array == 0 || s.vm.Mem.Reader.ReadAt(raw, array) != nil) {
			continue
		}
		if again, ok := s.vm.Mem.Static(s.listField); !ok || again != list {
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
func (ts *Threads) ThreadNames() map[int]string {
	names, _ := ts.AskThreads()
	return names
}

// AskThreads is ThreadNames; whole reports whether the VM reported all of its Java threads. It does
// not while it begins or ends, or when a thread is just starting; then nothing is known about
// threads that it did not report.
func (ts *Threads) AskThreads() (names map[int]string, whole bool) {
	names = make(map[int]string)
	list, whole := ts.List()
	if whole {
		ts.store(list)
	}
	if ts.off.threadObj == vmstructs.Absent || !ts.heap.OK {
		return names, whole
	}
	ts.heap.Begin()
	for _, t := range list {
		if name, ok := ts.steadyName(t); ok {
			names[int(t.TID)] = name
		}
	}
	return names, whole
}

// ThreadName is ThreadNames for one thread; false if it is not a Java thread or its name cannot be
// told for sure.
func (ts *Threads) ThreadName(tid uint32) (string, bool) {
	addr, ok := ts.JavaThread(tid)
	if !ok || ts.off.threadObj == vmstructs.Absent || !ts.heap.OK {
		return "", false
	}
	object, ok := ts.vm.Mem.U64(addr + ts.off.threadObj)
	if !ok {
		return "", false
	}
	ts.heap.Begin()
	return ts.steadyName(Thread{Addr: addr, object: object, TID: tid})
}

// steadyName reads a name again if the collector moved the object while it was
// read, which eetop shows.
func (ts *Threads) steadyName(t Thread) (string, bool) {
	for range 3 {
		if name, ok := ts.threadName(t); ok {
			return name, true
		}
	}
	return "", false
}
