// Package attribution says how much a function is the program's that people look at: it tells
// what somebody wrote from what starts threads, and from what lies below it.
package attribution

import (
	"path"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/walk"
)

// Part is how much a function is the program's.
type Part uint8

const (
	Nothing Part = iota // the kernel, the C library, a VM
	Library             // the library of a runtime: java.util.concurrent
	Program
)

// systemLibraries are those below what people write, by the beginnings of their file names.
var systemLibraries = []string{
	"libc.", "libc-", "ld-linux", "ld-musl", "ld-", "libpthread", "linux-vdso", "[vdso]", "libjvm.", "libjli.", "libjava.", "libnio.", "libnet.",
	"libextnet.", "libverify.", "libzip.", "libstdc++.", "libgcc_s.",
}

// runtimePackages begin the names of functions that a runtime comes with.
var runtimePackages = []string{"java.", "javax.", "jdk.", "sun.", "com.sun.", "runtime.", "internal/"}

// Of says how much the program's a function is. One of native code that has no name is
// nothing of it.
func Of(kind walk.Kind, name, module string) Part {
	switch kind {
	case walk.KindUnknown, walk.KindKernel, walk.KindStub:
		return Nothing
	case walk.KindNative:
		base := path.Base(module)
		if is, _ := Starts(kind, name, module); is || module == "" || strings.HasPrefix(path.Base(name), base+"+0x") {
			return Nothing
		}
		if slices.ContainsFunc(systemLibraries, func(l string) bool { return strings.HasPrefix(base, l) }) {
			return Nothing
		}
	}
	if slices.ContainsFunc(runtimePackages, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return Library
	}
	return Program
}
