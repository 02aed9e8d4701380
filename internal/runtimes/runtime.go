// Package runtimes recognises what kind of program a process is: a Java virtual machine and its
// version, .NET, Go, and so on. It decides by what the mapped files export, not by their names, and
// reads little.
package runtimes

import "github.com/candid-profiler/candid/internal/target"

// Kind is a kind of runtime.
type Kind uint8

// The kinds. If a process has several, the first in this order is reported.
const (
	Unknown     Kind = iota
	Hotspot          // OpenJDK's virtual machine
	OpenJ9           // Eclipse's virtual machine for Java
	CoreCLR          // .NET
	NativeAOT        // .NET compiled ahead of time
	NativeImage      // Java compiled ahead of time by GraalVM
	Node
	Python
	Ruby
	Go
	Wine   // a Windows program in Wine
	Native // machine code from files, no known runtime
	numKinds
)

var kindNames = [numKinds]string{"unknown", "hotspot", "openj9", "coreclr", "nativeaot", "native-image", "node", "python", "ruby", "go", "wine", "native"}

// String returns the name as `ps` shows it.
func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return kindNames[Unknown]
}

// Detected is the runtime that was recognised in a process.
type Detected struct {
	Kind    Kind
	Version string // "17.0.15", "1.8.0_412", "1.26.8"; "" if it is not known
	Path    string // the file by which it was recognised, in the target's mount namespace
}

// String returns the name and the version: "hotspot 17.0.15".
func (r Detected) String() string {
	if r.Version == "" {
		return r.Kind.String()
	}
	return r.Kind.String() + " " + r.Version
}

// Process is one line of `ps`.
type Process struct {
	target.Summary          // Summary.Reason says why it cannot be profiled
	Runtime        Detected // Unknown if it cannot be examined
}

// Of recognises the runtime of one process. For several, use a Detector, which examines each file
// once.
func Of(p *target.Process) (Detected, error) { return NewDetector().Of(p) }

// List lists all processes with their runtimes, by ascending PID.
func List() ([]Process, error) {
	all, err := target.List()
	if err != nil {
		return nil, err
	}
	d := NewDetector()
	out := make([]Process, 0, len(all))
	for _, s := range all {
		e := Process{Summary: s}
		if s.Reason == target.ReasonNone {
			e.Runtime, e.Reason = d.look(s.PID)
			if e.Reason == target.ReasonNoProcess {
				continue // it has ended since
			}
		}
		out = append(out, e)
	}
	return out, nil
}
