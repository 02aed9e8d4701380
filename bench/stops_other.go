//go:build !linux

package main

func (b *bench) stops() {
	b.add(row{Section: "suspend", What: "a running thread stands still, median", Failed: "threads are suspended on Linux only"})
}
