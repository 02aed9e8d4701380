package suspend

import (
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/procsyscall"
)

// add returns room for a sample; nil if there is none. The caller holds w.mu.
func (w *worker) add() *sample {
	s := w.next()
	if s == nil {
		w.counts.lost++
		w.e.wakeReader()
	}
	return s
}

// begin fills in what does not depend on how the thread was found.
func (w *worker) begin(s *sample, p *pick, now int64) {
	*s = sample{th: p.th, time: now, cpu: w.cpu, weight: p.account.run - p.th.sampled + p.backlog, regs: s.regs, asleep: p.asleep, off: w.used}
	p.took = true
}

// end accounts for the room that a sample took.
func (w *worker) end(s *sample) {
	if w.e.scanner != nil {
		s.ready = s.th.takeWaited(w.pick.late, uint64(w.e.opts.Period))
	}
	if w.keep(s) {
		w.e.wakeReader()
	}
}

// copyAsleep takes the sample of a thread that fell asleep in the kernel before the sampling thread
// had the CPU, so that it was in that call when the sample was due. The thread is not stopped,
// because its stack does not change until it runs again. The caller holds w.mu.
func (w *worker) copyAsleep(p *pick) {
	s := w.add()
	if s == nil {
		return
	}
	place, ok := procsyscall.Parse(p.th.read(&w.reader, &p.th.placeFD, "syscall"))
	if !ok || place.Running {
		w.drop()
		w.counts.raced++
		return
	}
	s.regs.place(place.PC, place.SP)
	w.begin(s, p, clock())
	s.flags |= capture.InKernel
	p.inCall = true
	if w.copyStack(p, s); p.took && !w.standsStill(p) {
		// The thread ran on another CPU meanwhile, and its stack has changed.
		w.drop()
		p.took = false
		w.counts.raced++
		return
	}
	if p.took {
		w.counts.asleep++
		w.end(s)
	}
}

// copy takes the sample of a stopped thread. The caller holds w.mu.
func (w *worker) copy(p *pick, now int64) {
	s := w.add()
	if s == nil {
		return
	}
	if s.regs.read(p.tid) != 0 {
		w.drop()
		w.counts.refused++
		return
	}
	in, broken := s.regs.inCall()
	switch {
	case !broken || p.settled:
	case s.regs.mend(p.tid):
		w.counts.mended++
	default:
		p.broken = true
		w.counts.broken++
	}
	if in && p.unsure {
		w.drop()
		w.counts.unsure++
		return
	}
	w.begin(s, p, now)
	if p.inCall = in; in {
		s.flags |= capture.InKernel
	}
	if w.copyStack(p, s); p.took {
		w.end(s)
	}
}

// copyStack copies the thread's stack; if there is no room for it the sample is
// dropped and p.took is false.
func (w *worker) copyStack(p *pick, s *sample) {
	sp := s.regs.sp()
	s.at = sp - redZone
	if sp < 4096 || sp >= 1<<56 {
		s.flags |= capture.StackUnread
		return
	}
	base := s.regs.threadBase()
	limit, known := uint64(w.e.maxStack), p.stack.top(sp)
	var end, wordAt uint64
	switch {
	case known != 0:
		end = known
	case base > sp && base-sp <= near:
		end, wordAt = base, base
	case p.first > sp && p.first-sp <= near:
		end, known = p.first, p.first
	default:
		limit = min(limit, unknownStack)
		end = sp + limit
	}
	size := min(end-s.at, limit)
	if uint64(len(w.arena)-w.used) < size {
		w.counts.lost++
		p.took = false
		w.drop()
		w.e.wakeReader()
		return
	}
	to := w.arena[w.used : w.used+int(size)]
	n, word := p.th.proc.memory.copy(p.tid, to, s.at, wordAt)
	if n == 0 && redZone > 0 {
		// The page below the stack pointer may be a guard page.
		s.at = sp
		n, word = p.th.proc.memory.copy(p.tid, to[:size-redZone], s.at, wordAt)
	}
	if wordAt != 0 {
		if baseIsTop(base, word) {
			known = base
		} else {
			n = min(n, unknownStack)
		}
	}
	s.len, s.top = n, known
	switch {
	case n == 0:
		s.flags |= capture.StackUnread
	case known == 0 || s.at+uint64(n) < known:
		s.flags |= capture.StackCut
	}
	w.copyRegions(p, s)
}
