package record

import (
	"errors"
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/target"
)

// Subject is a process of which Options.Service is to say what it belongs to.
type Subject struct {
	PID int
	// Parent is the process that started it, 0 if that was before the recording. It may have ended.
	Parent int
	// Target is the process, or what is left of it if it has ended. It is nil for kernel threads, and
	// for processes that ended before anything could be known of them. It is valid during the call.
	Target *target.Process
	Comm   string // the operating system's name, "" if not known
	Kernel bool   // a kernel thread
}

// maxParents bounds how many processes it is known of who started them.
const maxParents = 1 << 15

// services names what processes belong to.
type services struct {
	name    func(Subject) (service, container string) // nil: nobody wants to know
	parents map[uint32]uint32                         // of processes that began while candid was watching
	bare    map[uint32]bool                           // of this part: processes without a program that have an entry
	kernel  map[uint32]bool                           // kernel threads
}

func newServices(name func(Subject) (service, container string)) services {
	return services{name: name, parents: map[uint32]uint32{}, bare: map[uint32]bool{}, kernel: map[uint32]bool{}}
}

// notice records who started a process.
func (v *services) notice(n *capture.ProcessEvent) {
	if v.name == nil || n.Kind != capture.Fork || n.PID == n.Parent {
		return
	}
	if len(v.parents) >= maxParents {
		clear(v.parents)
	}
	v.parents[n.PID] = n.Parent
	delete(v.bare, n.PID)
	delete(v.kernel, n.PID)
}

// refused records why a process could not be opened.
func (v *services) refused(pid uint32, err error) {
	if v.name != nil && errors.Is(err, target.ErrKernelThread) && len(v.kernel) < maxParents {
		v.kernel[pid] = true
	}
}

// serve names the service of a process that has an entry in the profile.
func (s *session) serve(p *process) {
	if s.services.name == nil || p.index < 0 {
		return
	}
	pid := uint32(p.pid)
	comm := p.target.Comm()
	if comm == "" {
		comm = s.comms[pid]
	}
	proc := &s.b.Processes()[p.index]
	proc.Service, proc.Container = s.services.of(Subject{PID: p.pid, Parent: int(s.services.parents[pid]), Target: p.target, Comm: comm})
}

// serveBare gives a process without a program an entry of its own, so that its samples have a service
// too.
func (s *session) serveBare(pid uint32, comm string) {
	v := &s.services
	if v.name == nil || v.bare[pid] {
		return
	}
	v.bare[pid] = true
	service, container := v.of(Subject{PID: int(pid), Parent: int(v.parents[pid]), Comm: comm, Kernel: v.kernel[pid]})
	s.b.AddProcess(profile.Process{PID: int(pid), Command: comm, Service: service, Container: container})
}

// of names a service. A fault in that costs only the name.
func (v *services) of(who Subject) (service, container string) {
	defer func() {
		if r := recover(); r != nil {
			service, container = "", ""
		}
	}()
	return v.name(who)
}

// Rename names the services of all processes anew, with a function that takes the place of
// Options.Service. Samples that belong to the present part of the recording are renamed with their
// processes.
func (r *Recording) Rename(service func(Subject) (service, container string)) {
	s := r.s
	s.between.do(func() {
		s.services.name = service
		for _, p := range s.procs {
			s.serve(p)
		}
	})
}

// Throttle makes the engine sample that many times less often than requested, or less often still if
// it has its own reasons; 1 ends that. The error wraps capture.ErrUnsupported if the engine cannot.
func (r *Recording) Throttle(times int, why string) error {
	t, ok := r.engine.(capture.Throttler)
	if !ok {
		return fmt.Errorf("the engine %s has one rate: %w", r.engine.Name(), capture.ErrUnsupported)
	}
	t.Throttle(times, why)
	return nil
}
