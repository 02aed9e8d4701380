// Package bpfcopy is the engine with the least cost for the target: a small BPF program on each
// CPU's sampling event checks whether the interrupted thread is a target's, copies its registers
// and exactly the live bytes of its stack into a ring buffer, and lets it go on.
package bpfcopy

//go:generate go tool bpf2go -go-package bpfcopy -tags linux -target amd64,arm64 -output-stem capture capture bpf/capture.c -- -O2 -Wall -Werror
//go:generate go tool bpf2go -go-package bpfcopy -tags linux -target amd64,arm64 -output-stem ticks ticks bpf/capture.c -- -O2 -Wall -Werror -DTICKS
//go:generate go tool bpf2go -go-package bpfcopy -tags linux -target amd64,arm64 -output-stem offcpu offcpu bpf/offcpu.c -- -O2 -Wall -Werror
//go:generate go tool bpf2go -go-package bpfcopy -tags linux -target amd64,arm64 -output-stem probe probe bpf/probe.c -- -O2 -Wall -Werror
