package bpfcopy

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/vmread"
)

// asleep is what was read about threads that sleep while a recording ends. Their registers come
// from the kernel, their stacks are read from outside: neither changes while they sleep, and a
// second look checks that they slept all the time.
type asleep struct {
	stuck  vmread.Stuck
	looks  []byte // records of bpf/offcpu.c
	stacks []byte
	copies []stackCopy
	maps   map[uint32][]target.Mapping // by PID
	still  map[uint32]uint64           // since when each thread sleeps, by TID
}

// stackCopy is a copy in asleep.stacks.
type stackCopy struct {
	look     int // index into looks
	at, top  uint64
	off, len int
}

const (
	// lookArena is how many bytes of stacks are read before they are handed over.
	lookArena = 4 << 20
	// nearStack is how far a stack pointer may be from its thread's descriptor.
	nearStack = 64 << 20
)

// lookAsleep hands over sleeps that go on: if last, those that the end of the recording cuts off,
// otherwise the part of them until now. It reports whether the threads could be looked at.
func (e *Engine) lookAsleep(end uint64, last bool, sink capture.Sink) bool {
	a := &e.seen
	a.looks, a.maps = a.looks[:0], map[uint32][]target.Mapping{}
	var started uint64
	if e.progs.offCPU.coll.Variables["started"].Get(&started) != nil {
		return false
	}
	e.started = started
	if e.told == nil {
		e.told = told{}
	}
	e.asleep = 0
	err := e.progs.offCPU.each(func(b []byte) {
		if word(b[offLookSince:]) != 0 {
			e.asleep++
		}
		if !last && (woken(b) || e.brief(b, started, end)) {
			return // it reports how long it slept itself, when it has a CPU
		}
		if word(b[offLookSince:]) != 0 && !e.repeat(b, started, end, sink) {
			a.looks = append(a.looks, b...)
		}
	})
	if err != nil {
		return false
	}
	for next := 0; next < len(a.looks); {
		next = a.read(next, maxStackOf(e.opts))
		a.still = map[uint32]uint64{}
		if e.progs.offCPU.each(func(b []byte) {
			a.still[binary.LittleEndian.Uint32(b[offLookTID:])] = word(b[offLookSince:])
		}) != nil {
			break
		}
		for _, c := range a.copies {
			e.handAsleep(c, started, end, last, sink)
		}
	}
	return true
}

// stateOf returns how a thread left the CPU.
func stateOf(b []byte) capture.State {
	return min(capture.State(b[offLookState]), capture.Uninterruptible)
}

// woken reports whether a thread that is off the CPU only waits for one.
func woken(b []byte) bool { return b[offLookState+1] != 0 }

// brief reports whether the unreported part of a sleep is still too short to be reported: most such
// sleeps end soon. This does not apply to sleeps that began before the recording.
func (e *Engine) brief(b []byte, started, end uint64) bool {
	from, _ := e.told.until(binary.LittleEndian.Uint32(b[offLookTID:]), word(b[offLookSince:]), started)
	return end < from+uint64(e.briefest())
}

// repeat hands over more time of a sleep that the sink knows; false if the sleep has to be handed
// over in full. The look has shown that the thread is still in that sleep.
func (e *Engine) repeat(b []byte, started, end uint64, sink capture.Sink) bool {
	le, s := binary.LittleEndian, &e.snap
	since, tid := le.Uint64(b[offLookSince:]), le.Uint32(b[offLookTID:])
	from, known := e.told.until(tid, since, started)
	r, ok := sink.(capture.SleepSink)
	state := stateOf(b)
	if !ok || !known || from >= end || state < capture.Sleeping {
		return false
	}
	*s = capture.Snapshot{Sleep: since, Time: end, PID: le.Uint32(b[offLookPID:]), TID: tid, Weight: end - from, State: state, Kernel: s.Kernel[:0]}
	again := false
	for _, event := range [...]int{e.events.off, e.events.wall} {
		if event < 0 {
			continue
		}
		s.Event = uint16(event)
		if taken, _ := r.Again(s); !taken {
			return again // both are known, or neither
		}
		again = true
		e.samples.Add(1)
	}
	if again {
		e.told.tell(tid, since, end)
	}
	return again
}

// read copies the stacks of the records from next on, as many as there is room for, and returns the
// record to continue with.
func (a *asleep) read(next, maxStack int) int {
	a.stacks, a.copies = a.stacks[:0], a.copies[:0]
	for next < len(a.looks) && len(a.stacks) < lookArena {
		a.copies = append(a.copies, a.copyStack(next, maxStack))
		next += lookSize
	}
	return next
}

func (a *asleep) copyStack(look, maxStack int) stackCopy {
	b := a.looks[look : look+lookSize]
	le := binary.LittleEndian
	pid := le.Uint32(b[offLookPID:])
	var snap capture.Snapshot
	decodeRegs(b[offLookRegs:offLookKernel], &snap.Regs)
	sp := snap.Regs.SP()
	c := stackCopy{look: look, at: sp - belowSP, off: len(a.stacks)}
	if sp < 4096 || sp >= 1<<56 {
		return c
	}
	limit := uint64(maxStack)
	end := a.top(int(pid), sp, le.Uint64(b[offLookThreadBase:]), le.Uint64(b[offLookFirstStack:])+16)
	c.top = end
	if end == 0 {
		limit = min(limit, unknownStack)
		end = a.mappingEnd(pid, sp)
	}
	if end <= sp {
		return c
	}
	size := min(end-c.at, limit)
	from := len(a.stacks)
	a.stacks = append(a.stacks, make([]byte, size)...)
	n := vmread.Some(int(pid), a.stacks[from:], c.at, &a.stuck)
	if n == 0 {
		// The page below the stack pointer may be a guard page.
		c.at = sp
		n = vmread.Some(int(pid), a.stacks[from:from+int(size-belowSP)], sp, &a.stuck)
	}
	a.stacks = a.stacks[:from+n]
	c.len = n
	return c
}

// top returns the end of a thread's stack if its place is the one that C libraries or exec use,
// else 0.
func (a *asleep) top(pid int, sp, base, first uint64) uint64 {
	if sp < base && base-sp <= nearStack {
		var word [8]byte
		if vmread.Some(pid, word[:], base, &a.stuck) == len(word) && baseIsTop(base, binary.LittleEndian.Uint64(word[:])) {
			return base
		}
	}
	if sp < first && first-sp <= nearStack {
		return first
	}
	return 0
}

// mappingEnd returns the end of the mapping that holds an address, 0 if there is none.
func (a *asleep) mappingEnd(pid uint32, addr uint64) uint64 {
	maps, ok := a.maps[pid]
	if !ok {
		if p, err := target.Open(int(pid)); err == nil {
			maps, _ = p.Mappings()
			_ = p.Close()
		}
		a.maps[pid] = maps
	}
	for i := range maps {
		if maps[i].Contains(addr) {
			return maps[i].End
		}
	}
	return 0
}

// handAsleep hands over one thread's sleep, if it still goes on.
func (e *Engine) handAsleep(c stackCopy, started, end uint64, last bool, sink capture.Sink) {
	b := e.seen.looks[c.look : c.look+lookSize]
	le, s := binary.LittleEndian, &e.snap
	since, tid := le.Uint64(b[offLookSince:]), le.Uint32(b[offLookTID:])
	if e.seen.still[tid] != since {
		return // it has woken up, and its sleep was sampled
	}
	from, known := e.told.until(tid, since, started)
	if from >= end {
		return
	}
	*s = capture.Snapshot{
		Sleep: since, Time: end, PID: le.Uint32(b[offLookPID:]), TID: tid, Flags: capture.InKernel,
		Syscall: le.Uint32(b[offLookSyscall:]), Kernel: s.Kernel[:0],
	}
	for i := range min(le.Uint64(b[offLookKernelLen:]), lookDepth) {
		s.Kernel = append(s.Kernel, le.Uint64(b[offLookKernel+8*i:]))
	}
	decodeRegs(b[offLookRegs:offLookKernel], &s.Regs)
	s.StackAddr, s.StackTop, s.Stack = c.at, c.top, e.seen.stacks[c.off:c.off+c.len]
	switch {
	case c.len == 0:
		s.Flags |= capture.StackUnread
	case c.top == 0 || c.at+uint64(c.len) < c.top:
		s.Flags |= capture.StackCut
	}
	if known {
		s.Flags |= capture.Continued
	}
	e.bytes.Add(uint64(c.len))
	time, state := end-from, stateOf(b)
	least, period := uint64(e.opts.LeastSleep()), uint64(e.opts.Period)
	switch {
	case last:
		if !known {
			least, period = cutOff(time, least), cutOff(time, period)
		} else {
			least, period = time, time
		}
		if state >= capture.Sleeping {
			e.giveAway(sink, e.events.off, least, state)
		}
		e.giveAway(sink, e.events.wall, period, state)
		e.told.over(tid)
	case state >= capture.Sleeping && time >= max(least, period):
		e.giveAway(sink, e.events.off, time, state)
		e.giveAway(sink, e.events.wall, time, state)
		e.told.tell(tid, since, end)
	}
}

// cutOff returns the weight of a stretch of time whose end is not known: its own length if it is
// long, otherwise one period with the probability that makes up for the others.
func cutOff(time, period uint64) uint64 {
	switch {
	case time >= period:
		return time
	case rand.Uint64N(period) < time:
		return period
	}
	return 0
}
