// Package confine takes from candid's own process what a command does not need, so that a mistake in
// what reads hostile files and hostile processes gives whoever wrote them little.
package confine

// Sampler says what a process that looks at others will still do, beyond reading them.
type Sampler struct {
	Launched bool // it passes signals on to a program that it has launched, of whatever user
	Admin    bool // it sets probes in programs, or opens the kernel's tracing files, which are mounted nowhere
	Starts   bool // it starts copies of itself
	Loads    bool // it loads BPF programs
	Agent    bool // it may begin to listen at a port below 1024, and what it starts records with what it keeps
}
