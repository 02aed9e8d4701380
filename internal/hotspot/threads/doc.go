// Package threads reads the threads of a HotSpot virtual machine: which there are, their names, what
// they are for, what each does and waits for, which virtual thread it carries, who holds which lock,
// and whether the VM stops them at a safepoint. All memory of the target is taken as hostile.
//
// threads.go has the list; state.go, kind.go, name.go and virtual.go answer questions about single
// threads while candid samples; dump.go and info.go read all of them at one moment.
package threads
