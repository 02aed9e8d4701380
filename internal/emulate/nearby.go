package emulate

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
)

// Nearby learns which memory a process's traces need, and describes what an engine has to copy with
// the stack so that they have it as it was: what registers and words on the stack point to, and
// blocks of memory that earlier traces read.
type Nearby struct {
	read    map[uint64]uint32   // by block, how often a word that changes was read late
	changes map[uint64]struct{} // words that were seen to change
	last    []uint64            // the blocks that are copied
}

// Sizes of what is copied.
const (
	blockSize   = 256
	atRegister  = 256
	atWord      = 128
	stackWords  = 24
	mostBlocks  = 64
	mostRuns    = 14
	mostOfRun   = 2048
	maxLearning = 1 << 12
	maxChanges  = 1 << 15
)

// NewNearby returns a Nearby that has learned nothing.
func NewNearby() *Nearby { return &Nearby{read: map[uint64]uint32{}, changes: map[uint64]struct{}{}} }

// Learn notes which words that change the last trace of m has wanted.
func (n *Nearby) Learn(m *Machine) {
	for _, addr := range m.mem.missed {
		n.want(addr, 1)
	}
}

func (n *Nearby) want(addr uint64, times uint32) {
	b := addr &^ (blockSize - 1)
	if _, ok := n.read[b]; ok || len(n.read) < maxLearning {
		n.read[b] += times
	}
}

// changed notes that a word has changed.
func (n *Nearby) changed(addr uint64) {
	if len(n.changes) >= maxChanges {
		clear(n.changes)
	}
	n.changes[addr] = struct{}{}
	n.want(addr, 4)
}

// run is blocks side by side.
type run struct {
	addr, size uint64
	reads      uint32
}

// Follow returns what to copy; nil if it is the same as before.
func (n *Nearby) Follow() *capture.Follow {
	blocks := make([]uint64, 0, len(n.read))
	for b := range n.read {
		blocks = append(blocks, b)
	}
	slices.SortFunc(blocks, func(a, b uint64) int { return cmp.Or(cmp.Compare(n.read[b], n.read[a]), cmp.Compare(a, b)) })
	blocks = blocks[:min(len(blocks), mostBlocks)]
	slices.Sort(blocks)
	var runs []run
	for _, b := range blocks {
		if k := len(runs) - 1; k >= 0 && runs[k].addr+runs[k].size == b && runs[k].size < mostOfRun {
			runs[k].size += blockSize
			runs[k].reads += n.read[b]
		} else {
			runs = append(runs, run{b, blockSize, n.read[b]})
		}
	}
	slices.SortFunc(runs, func(a, b run) int { return cmp.Or(cmp.Compare(b.reads, a.reads), cmp.Compare(a.addr, b.addr)) })
	runs = runs[:min(len(runs), mostRuns)]
	for b, c := range n.read {
		if n.read[b] = c - (c+15)/16; n.read[b] == 0 { // what is copied is not wanted any more, and must stay for a while
			delete(n.read, b)
		}
	}
	blocks = blocks[:0]
	for _, r := range runs {
		for b := r.addr; b < r.addr+r.size; b += blockSize {
			blocks = append(blocks, b)
		}
	}
	if n.last != nil && slices.Equal(blocks, n.last) {
		return nil
	}
	n.last = append(make([]uint64, 0, mostBlocks), blocks...)
	return follow(runs)
}

// follow makes the steps: blocks first, then what registers and words on the stack point to.
func follow(runs []run) *capture.Follow {
	f := &capture.Follow{}
	step := func(s capture.Step) int {
		s.No = uint8(len(f.Steps) + 1)
		f.Steps = append(f.Steps, s)
		return len(f.Steps) - 1
	}
	for _, r := range runs {
		step(capture.Step{Op: capture.OpSet, Imm: r.addr})
		step(capture.Step{Op: capture.OpCopy, Arg: uint32(r.size)})
	}
	for _, r := range []uint32{
		cpu.RDI, cpu.RSI, cpu.RBX, cpu.RBP, cpu.R12, cpu.R13, cpu.R14, cpu.R15, cpu.RAX, cpu.RCX, cpu.RDX, cpu.R8, cpu.R9, cpu.R10,
	} {
		step(capture.Step{Op: capture.OpRegister, Arg: r})
		step(capture.Step{Op: capture.OpCopy, Arg: atRegister})
	}
	step(capture.Step{Op: capture.OpRegister, Arg: cpu.RSP})
	step(capture.Step{Op: capture.OpSet, Dst: 1, Imm: stackWords})
	loop := step(capture.Step{Op: capture.OpLoad, Dst: 2})
	step(capture.Step{Op: capture.OpCopy, Dst: 2, Arg: atWord})
	step(capture.Step{Op: capture.OpAdd, Imm: 8})
	count := step(capture.Step{Op: capture.OpCount, Dst: 1})
	f.Steps[count].No = capture.StepsEnd
	jump := step(capture.Step{Op: capture.OpJump})
	f.Steps[jump].No = uint8(loop)
	return f
}
