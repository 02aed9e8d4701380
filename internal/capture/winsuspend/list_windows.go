package winsuspend

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/winsys"
)

// list lists all processes and threads: which have come and gone, and what each has run.
func (s *sampler) list(first bool) error {
	s.adopt()
	begin := winsys.Clock()
	if err := s.snap.Take(); err != nil {
		return err
	}
	s.taken = begin
	s.round++
	for i := range s.snap.Processes {
		info := &s.snap.Processes[i]
		p := s.procs[int(info.PID)]
		if p != nil && p.created != 0 && p.created != info.Created && !p.alive() {
			p = nil // the id is another process's now
		}
		if p == nil {
			if p = s.wants(info, first); p == nil {
				continue
			}
		}
		p.seen = s.round
		s.listThreads(p, info, begin)
	}
	for pid, p := range s.procs {
		if p.seen == s.round || p.alive() {
			continue
		}
		s.settle(p)
		s.queue.notice(exit(p))
		p.close()
		delete(s.procs, pid)
	}
	s.listed = winsys.Clock()
	s.cost = s.listed - begin
	return nil
}

// wants opens a process that is not a target but should be one: a target's child, or one of a
// machine that is recorded as a whole.
func (s *sampler) wants(info *winsys.ProcessInfo, first bool) *process {
	child := false
	if s.e.opts.Children {
		parent := s.procs[int(info.Parent)]
		child = parent != nil && parent.created <= info.Created
	}
	if !child && !s.e.opts.All || info.PID <= 4 || int(info.PID) == os.Getpid() || int(info.PID) == s.e.watch.pid {
		return nil
	}
	if at, ok := s.refused[int(info.PID)]; ok && at == info.Created {
		return nil
	}
	p, err := openProcess(int(info.PID))
	if err != nil {
		if len(s.refused) > 1<<16 {
			clear(s.refused)
		}
		s.refused[int(info.PID)] = info.Created
		if child && mayOpen(err) {
			s.e.note(err.Error())
		}
		return nil
	}
	if child {
		s.e.children.Add(1)
	}
	s.procs[int(info.PID)] = p
	s.e.loads.add(p)
	if !first {
		s.queue.notice(capture.ProcessEvent{Kind: capture.Fork, Time: winsys.Clock(), PID: info.PID, TID: info.PID, Parent: info.Parent})
	}
	return p
}

// listThreads opens threads that have come, counts what each has run, and closes those that have
// ended.
func (s *sampler) listThreads(p *process, info *winsys.ProcessInfo, now uint64) {
	for i := range info.Threads {
		t := &info.Threads[i]
		th := p.threads[t.TID]
		if th == nil {
			var err error
			if th, err = p.openThread(t.TID, s.e.objects); err != nil {
				if !errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
					s.e.note("a thread could not be opened: " + err.Error())
				}
				continue
			}
			// One that was there before may run; what a new one has run since counts.
			if th.hot = now + cooling; s.round > 1 {
				s.counted(th, th.cpu, now)
			}
			th.wall, th.looked = now, 0
			p.threads[t.TID] = th
		}
		th.seen = s.round
		if cpu := t.CPU(); cpu > th.cpu {
			if !s.exact {
				s.counted(th, cpu-th.cpu, now)
			}
			th.cpu = cpu
		}
	}
	for tid, th := range p.threads {
		if th.seen == s.round {
			continue
		}
		s.drop(th)
		th.close()
		delete(p.threads, tid)
		s.queue.notice(capture.ProcessEvent{Kind: capture.Exit, Time: now, PID: uint32(p.pid), TID: tid})
	}
}
