package perfdata

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// settle compares the machine that was recorded with this one, once everything that a recording
// says of it has been read.
func (r *reader) settle() {
	r.settled = true
	host, err := os.Hostname()
	r.files.same = err == nil && host != "" && host == r.about.host
	r.names.choose(&r.files, r.about.release)
}

// sampled adds a sample to the profile.
func (r *reader) sampled(a *attr, misc uint16, body []byte) error {
	if r.b.Single() >= maxSamples || r.b.Nodes() > maxNodes || len(r.b.Threads()) > maxThreads || len(r.b.Processes()) > maxThreads || len(r.b.Frames()) > maxAllFrames {
		return errTooLarge
	}
	if !r.settled {
		r.settle()
	}
	s := &r.sample
	if err := s.parse(a, misc, body); err != nil {
		return err
	}
	p := r.procs.of(s.pid)
	if err := r.procs.prepare(p); err != nil {
		return err
	}
	if p.index < 0 {
		command := cmp.Or(p.space.Program, r.procs.comms[s.pid])
		p.index = r.b.AddProcess(profile.Process{PID: int(int32(s.pid)), Command: command})
	}
	if a.event < 0 {
		a.event, a.kind = len(r.kinds), a.eventKind()
		r.kinds = append(r.kinds, a)
		r.weights, r.counts = append(r.weights, 0), append(r.counts, 0)
	}
	out := profile.Sample{Time: s.time, Weight: s.period, Event: uint16(a.event), Thread: r.procs.thread(p, s.tid)}
	if a.kind.OnCPU() {
		out.State = profile.StateRunning
	}
	r.stackOf(p, a, s)
	out.End = r.stack.End
	out.Flags |= profile.FlagsOf(&r.stack, false)
	for i := len(r.stack.Frames) - 1; i >= 0; i-- {
		for _, f := range r.procs.standFor(p, &r.stack.Frames[i]) {
			out.Node = r.b.Node(out.Node, f)
		}
	}
	if s.time != 0 && (r.first == 0 || s.time < r.first) {
		r.first = s.time
	}
	r.last = max(r.last, s.time)
	r.weights[a.event] += s.period
	r.counts[a.event]++
	r.b.Add(out)
	return nil
}

// stackOf sets r.stack to a sample's stack.
func (r *reader) stackOf(p *process, a *attr, s *sample) {
	r.kernel, r.user = r.kernel[:0], r.user[:0]
	mode := uint64(0)
	switch s.mode {
	case modeKernel, modeGuestKernel, modeHypervisor:
		mode = contextKernel
	case modeUser, modeGuestUser:
		mode = contextUser
	}
	put := func(pc uint64) {
		if mode == contextUser {
			r.user = append(r.user, pc)
		} else if mode != 0 {
			r.kernel = append(r.kernel, pc)
		}
	}
	for b := s.chain; len(b) >= 8; b = b[8:] {
		switch pc := le.Uint64(b); {
		case pc < contextFirst:
			put(pc)
		case pc == contextUser || pc == contextGuestUser:
			mode = contextUser
		case pc == contextKernel || pc == contextHypervisor || pc == contextGuest || pc == contextGuestKernel:
			mode = contextKernel
		}
	}
	if len(r.kernel)+len(r.user) == 0 && s.ip != 0 {
		put(s.ip)
	}
	if a.sampleType&(sampleRegsUser|sampleStackUser) == sampleRegsUser|sampleStackUser && s.abi == abi64 {
		r.copied = true
		r.walk(p, a, s)
		return
	}
	r.chained(p)
	if a.sampleType&sampleCallchain == 0 {
		r.bare++
	}
}

// chained makes a stack of the addresses that perf found by frame pointers.
func (r *reader) chained(p *process) {
	st := &r.stack
	st.Reset()
	for i, pc := range r.kernel {
		f := walk.Frame{PC: pc, Kind: walk.KindKernel}
		if i > 0 {
			f.Flags = walk.ReturnAddress
		}
		st.Push(f)
	}
	for i, pc := range r.user {
		flags, prov := walk.FrameFlags(0), walk.Exact
		if i > 0 {
			// Frame pointers are a guess: code that does not keep them is skipped, or ends the
			// chain.
			flags, prov = walk.ReturnAddress, walk.Heuristic
		}
		f, ok := p.code.Native.Frame(pc, flags)
		if ok {
			f.Owner = p.code.NativeOwner()
		}
		f.Prov = prov
		st.Push(f)
	}
}

// abi64 is PERF_SAMPLE_REGS_ABI_64.
const abi64 = 2

// walk walks the copy of a stack.
func (r *reader) walk(p *process, a *attr, s *sample) {
	snap := capture.Snapshot{PID: s.pid, TID: s.tid, Kernel: r.kernel, Stack: s.stack}
	if !registers(r.arch(), a.regsUser, s.regs, &snap.Regs) {
		snap.Flags |= capture.NoUser
	}
	snap.StackAddr = snap.Regs.SP()
	switch {
	case snap.Flags&capture.NoUser != 0: // there is no user stack
	case len(s.stack) == 0:
		snap.Flags |= capture.StackUnread
	case s.stackUsed < s.stackSize:
		snap.StackTop = snap.StackAddr + s.stackUsed // the stack ended there
	}
	p.code.Walker.Walk(&snap, p.code.Target.Memory(), &r.stack)
}

// registers converts perf's registers (asm/perf_regs.h); false if those that a walk needs are
// missing.
func registers(arch cpu.Arch, mask uint64, b []byte, to *cpu.Registers) bool {
	to.Arch = arch
	for bit := range 64 {
		if mask>>bit&1 == 0 || len(b) < 8 {
			continue
		}
		v := le.Uint64(b)
		b = b[8:]
		n := -1
		switch {
		case arch == cpu.ARM64 && bit <= cpu.XSP:
			n = bit
		case arch == cpu.ARM64 && bit == cpu.XSP+1, arch == cpu.AMD64 && bit == 8:
			to.PC = v
		case arch == cpu.AMD64 && bit < 8:
			n = int(dwarfOf[bit])
		case arch == cpu.AMD64 && bit >= 16 && bit < 24:
			n = cpu.R8 + bit - 16
		}
		if n >= 0 {
			to.R[n] = v
			to.Known |= 1 << n
		}
	}
	return to.PC != 0 && to.SP() != 0
}

// dwarfOf are the DWARF numbers of perf's first eight registers of x86.
var dwarfOf = [8]uint8{cpu.RAX, cpu.RBX, cpu.RCX, cpu.RDX, cpu.RSI, cpu.RDI, cpu.RBP, cpu.RSP}

// standFor returns the profile's frames for a physical one, the outermost first.
func (ps *processes) standFor(p *process, f *walk.Frame) []uint32 {
	key := frameKey{f.PC, f.Ref, f.Kind, f.Prov, f.Flags}
	known, ok := p.frames[key]
	if ok {
		return known
	}
	if len(p.frames) >= maxFrames {
		clear(p.frames)
	}
	r := ps.r
	r.scratch = r.scratch[:0]
	if f.Kind == walk.KindKernel {
		r.kernelSeen = true
		r.scratch = r.names.resolve(*f, r.scratch)
	} else {
		r.scratch = p.code.Resolve(*f, r.scratch)
	}
	for i := range r.scratch {
		known = append(known, r.frame(&r.scratch[i], f))
	}
	slices.Reverse(known)
	p.frames[key] = known
	return known
}

// frame adds a named frame to the profile.
func (r *reader) frame(s *symbol.Frame, f *walk.Frame) uint32 {
	fn := r.b.Func(profile.Func{Name: s.Function, Raw: s.Raw, Signature: s.Signature, Module: s.Module, File: s.File, Start: s.Start, NoName: s.NoName})
	out := profile.Frame{Func: fn, Line: s.Line, BCI: s.BCI, Kind: s.Kind, Prov: f.Prov, Flags: s.Flags | f.Flags, Addr: s.Addr}
	if out.Kind == walk.KindCompiled || s.NoName && s.Module == "" {
		out.Addr = 0 // an address of generated code means nothing after the run
	}
	return r.b.Frame(out)
}

// describe returns how the recording was made.
func (r *reader) describe() string {
	text := "recorded by perf"
	if r.about.version != "" {
		text += " " + r.about.version
	}
	if len(r.kinds) > 0 && r.kinds[0].flags&flagFreq != 0 {
		text += fmt.Sprintf(", %d samples a second", r.kinds[0].period)
	}
	switch {
	case r.copied:
		text += fmt.Sprintf(", user stacks walked from copies of up to %d bytes", r.kinds[0].stackUser)
	case r.bare == uint64(r.b.Samples()):
		text += ", without call chains"
	default:
		text += ", user stacks by frame pointers"
	}
	return text
}
