package perfdata

import (
	"cmp"
	"os"
	"strconv"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/safeopen"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// process is one program of the recording, from its start until the process ended or executed
// another program.
type process struct {
	pid     uint32
	space   *target.Space
	index   int // into the profile's Processes, -1: no sample yet
	threads map[uint32]uint32

	// Created at the first sample.
	code   *attach.Process
	frames map[frameKey][]uint32 // of the profile, the outermost first
}

// frameKey identifies a physical frame of a process.
type frameKey struct {
	pc, ref uint64
	kind    walk.Kind
	prov    walk.Provenance
	flags   walk.FrameFlags
}

// processes are those that exist at the current time of the recording.
type processes struct {
	r      *reader
	live   map[uint32]*process
	comms  map[uint32]string // names of threads
	files  *native.Files
	shared *symbol.Shared
	spaces *target.Spaces
	open   int // how many have a stepper
}

// maxOpen bounds the processes that have samples: their tables take memory.
const (
	maxOpen   = 1 << 12
	maxComms  = 1 << 20
	maxFrames = 1 << 20 // that are cached for a process
)

func (ps *processes) init(r *reader) {
	*ps = processes{r: r, live: map[uint32]*process{}, comms: map[uint32]string{}, files: native.NewFiles(),
		shared: symbol.NewShared()}
	// Processes that existed before the recording are described at its beginning, by records like all others.
	ps.spaces = target.NewSpaces(func(uint32) *target.Space { return &target.Space{Whole: true} }, func() {
		ps.close()
		clear(ps.live)
	})
}

func (ps *processes) close() {
	for _, p := range ps.live {
		ps.drop(p)
	}
}

// drop frees what naming needs.
func (ps *processes) drop(p *process) {
	if p.code != nil {
		p.code.Names.Close()
		ps.open--
	}
	p.code, p.frames = nil, nil
}

// of returns a process; one that is not known begins now.
func (ps *processes) of(pid uint32) *process {
	p := ps.live[pid]
	if p == nil {
		p = ps.begin(pid, ps.spaces.Have(pid))
	}
	return p
}

// begin adds the process that has an address space from now on.
func (ps *processes) begin(pid uint32, space *target.Space) *process {
	if old := ps.live[pid]; old != nil {
		ps.drop(old)
	}
	p := &process{pid: pid, space: space, index: -1}
	ps.live[pid] = p
	return p
}

func (ps *processes) named(pid, tid uint32, name string, exec bool) {
	if len(ps.comms) >= maxComms {
		clear(ps.comms)
	}
	ps.comms[tid] = name
	if exec {
		ps.begin(pid, ps.spaces.Exec(pid))
		return
	}
	if p := ps.live[pid]; p != nil {
		if i, ok := p.threads[tid]; ok && name != "" {
			t := &ps.r.b.Threads()[i]
			t.Name, t.OSName = name, name
		}
	}
}

func (ps *processes) forked(pid, parent, tid, parentTID uint32) {
	if name, ok := ps.comms[parentTID]; ok {
		ps.comms[tid] = name
	} else {
		delete(ps.comms, tid)
	}
	if pid != parent {
		ps.of(parent)
		ps.begin(pid, ps.spaces.Fork(pid, parent))
	} else if p := ps.live[pid]; p != nil {
		delete(p.threads, tid) // the number is that of a new thread
	}
}

func (ps *processes) exited(pid, tid uint32) {
	// More samples may come: what is known of the process stays until its number is reused.
	if p := ps.live[pid]; p != nil && pid == tid && ps.open > maxOpen {
		ps.drop(p)
	}
}

func (ps *processes) mapped(pid uint32, m target.Mapping) {
	p := ps.of(pid)
	ps.spaces.Map(pid, m)
	if p.code != nil {
		p.code.Native.Map(m)
	}
}

// prepare creates what walking and naming of a process need.
func (ps *processes) prepare(p *process) error {
	if p.code != nil {
		return nil
	}
	if ps.open >= 2*maxOpen {
		for _, other := range ps.live {
			ps.drop(other)
		}
	}
	o := attach.Options{Files: ps.files, Arch: ps.r.arch(), Shared: ps.shared, Names: func(names *symbol.Native) { names.Opened = ps.r.nativeModule }}
	if ps.r.files.same {
		// As perf does, names of generated code are taken from files of this user, or of root.
		path := "/tmp/perf-" + strconv.Itoa(int(p.pid)) + ".map"
		o.PerfMap = func() (*os.File, error) { return safeopen.Owned(path, os.Geteuid()) }
	}
	code, err := attach.New(target.Recorded(int(p.pid), ps.comms[p.pid], p.space, ps.r.files.open), o)
	if err != nil {
		return err
	}
	p.code, p.frames = code, map[frameKey][]uint32{}
	ps.open++
	return nil
}

// maxNativeModules bounds how many files with samples are reported.
const maxNativeModules = 1 << 16

// nativeModule reports a file that samples are in, by which it can be found again.
func (r *reader) nativeModule(p symbol.Place, buildID string) {
	if r.modules < maxNativeModules {
		r.modules++
		r.b.Observe(profile.Observation{Kind: profile.NativeModule, Process: -1, Values: []profile.Value{profile.Text(p.Name), profile.Text(p.Path), profile.Text(buildID)}})
	}
}

// arch returns the architecture of the machine that was recorded.
func (r *reader) arch() cpu.Arch {
	if r.about.arch == "aarch64" {
		return cpu.ARM64
	}
	return cpu.AMD64
}

// thread returns the profile's index of a thread.
func (ps *processes) thread(p *process, tid uint32) uint32 {
	if i, ok := p.threads[tid]; ok {
		return i
	}
	name := ps.comms[tid]
	if tid == 0 {
		name = "swapper"
	}
	name = cmp.Or(name, ps.comms[p.pid], p.space.Name(), "[unknown]")
	i := ps.r.b.NewThread(int(int32(p.pid)), int(int32(tid)), name)
	if p.threads == nil {
		p.threads = map[uint32]uint32{}
	}
	p.threads[tid] = i
	return i
}
