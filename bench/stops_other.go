//go:build !linux

package main

func (b *bench) stops() {
	b.add(row{Section: "suspend", What: "a running thread stands still, median", Failed: "threads are suspended on Linux only"})
}

func (b *bench) suspendCost() {
	b.add(row{Section: "suspend-cost", What: "target's CPU per sample of the suspend engine", Failed: "threads are suspended on Linux only"})
}

func (b *bench) copyCost() {
	b.add(row{Section: "copy-cost", What: "target's CPU per sample above the same event without a stack copy", Failed: "BPF is Linux's only"})
}

func (b *bench) waits() {
	b.add(row{Section: "waits", What: "time asleep, running and waiting for a CPU", Failed: "wall and off-CPU time are measured on Linux only"})
}

func (b *bench) gaps() {
	b.add(row{Section: "gaps", What: "a thread's gaps at 5 kHz above those of the bare event", Failed: "perf events are Linux's only"})
}
