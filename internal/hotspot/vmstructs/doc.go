// Package vmstructs finds a HotSpot Java virtual machine in another process and reads what the VM
// publishes about itself: the gHotSpotVM* tables of types, fields and constants, its flags and its
// version. All memory of the target is taken as hostile.
//
// module.go and module_pe.go find the VM, tables.go reads the tables, memory.go single values;
// finder.go remembers which files hold no VM, and alike.go shares between VMs of the same library
// what is the same in them.
package vmstructs
