package dump

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/capture/bpfcopy"
	"github.com/candid-profiler/candid/internal/capture/suspend"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/target"
)

// Dumper is attached to processes and reads their threads on each call of Take. It is used from one
// goroutine.
type Dumper struct {
	o     Options
	files *native.Files
	procs []*process
}

// New attaches to the processes; nothing is stopped. The errors are those of target.Open.
func New(o Options) (*Dumper, error) {
	if o.Patience <= 0 {
		o.Patience = 500 * time.Millisecond
	}
	d := &Dumper{o: o, files: native.NewFiles()}
	for _, pid := range slices.Compact(slices.Sorted(slices.Values(o.PIDs))) {
		p, err := openProcess(pid, d.files)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.procs = append(d.procs, p)
	}
	return d, nil
}

// Close releases the processes.
func (d *Dumper) Close() error {
	var err error
	for _, p := range d.procs {
		err = errors.Join(err, p.close())
	}
	d.procs = nil
	return err
}

// Take reads all threads once. If a process has ended meanwhile, the error wraps
// target.ErrNoProcess.
func (d *Dumper) Take() (*Dump, error) {
	out := &Dump{Schema: Schema, Time: time.Now()}
	out.Host, _ = os.Hostname()
	for i := range d.procs {
		r, err := d.takeOne(i)
		if err != nil {
			return nil, err
		}
		out.Processes = append(out.Processes, *r)
	}
	out.TookMS = float64(time.Since(out.Time).Microseconds()) / 1000
	return out, nil
}

// mostPrograms bounds how often a process is read again because it executed another program
// meanwhile.
const mostPrograms = 4

// takeOne reads one process, with the program that it runs now.
func (d *Dumper) takeOne(i int) (*Process, error) {
	for tries := 0; ; tries++ {
		if d.procs[i].Target.Replaced() {
			fresh, err := openProcess(d.procs[i].pid, d.files)
			if err != nil {
				return nil, err
			}
			_ = d.procs[i].close()
			d.procs[i] = fresh
		}
		r, err := d.procs[i].take(&d.o)
		if err != nil || tries == mostPrograms || !d.procs[i].Target.Replaced() {
			return r, err
		}
	}
}

// process is an attached process.
type process struct {
	*attach.Process
	pid      int
	dumper   runtimes.ThreadDumper // nil: no runtime that knows its threads
	follower runtimes.Follower     // nil: stacks continue nowhere else
	files    *taskFiles
	stopper  *suspend.Stopper
	cannot   string           // why there is no stopper
	waiters  *bpfcopy.Waiters // nil: files say where threads wait, or nothing does
	kept     string           // why they do not

	look look
}

func openProcess(pid int, files *native.Files) (*process, error) {
	a, err := attach.Open(pid, files)
	if err != nil {
		return nil, err
	}
	p := &process{Process: a, pid: pid}
	p.dumper, _ = runtimes.Ability[runtimes.ThreadDumper](a.Runtimes)
	p.follower, _ = runtimes.FollowerOf(a.Runtimes)
	if p.files, err = openTasks(pid); err != nil {
		return nil, errors.Join(fmt.Errorf("list the threads of process %d: %w (%v)", pid, target.ErrNoProcess, err), a.Close())
	}
	if p.stopper, err = suspend.NewStopper(pid); err != nil {
		p.cannot = err.Error()
	}
	p.openOthers()
	return p, nil
}

func (p *process) close() error {
	if p.stopper != nil {
		p.stopper.Close()
	}
	p.files.close()
	return p.Process.Close()
}
