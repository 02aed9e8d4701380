// Package attribution decides how much a function belongs to the program that people look at: it
// separates what somebody wrote from what starts threads, and from what lies below it.
package attribution

import (
	"path"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/walk"
)

// Part is how much a function belongs to the program.
type Part uint8

const (
	Nothing Part = iota // the kernel, the C library, a VM
	Library             // the library of a runtime: java.util.concurrent
	Program
)

// systemLibraries are those below what people write, by the prefixes of their file names.
var systemLibraries = []string{
	"libc.", "libc-", "ld-linux", "ld-musl", "ld-", "libpthread", "linux-vdso", "[vdso]", "libjvm.", "libjli.", "libjava.", "libnio.", "libnet.",
	"libextnet.", "libverify.", "libzip.", "libstdc++.", "libgcc_s.",
}

// runtimePackages are prefixes of the names of functions that come with a runtime.
var runtimePackages = []string{"java.", "javax.", "jdk.", "sun.", "com.sun.", "runtime.", "internal/"}

// Of returns how much a function belongs to the program. A function of native code without a name
// is Nothing.
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
