package attribution

import (
	"path"
	"strings"

	"github.com/candid-profiler/candid/internal/walk"
)

// starters are the functions between the kernel and the first function that somebody wrote, by the
// prefix of the library's name.
var starters = map[string][]string{
	"libc":    libcStarters, // glibc 2.31 and later, musl
	"ld-musl": libcStarters,
	// Before glibc 2.34 threads had a library of their own.
	"libpthread": {"start_thread", "__clone", "clone"},
	// JDK 8 to 27: os_linux.cpp, thread.cpp and javaThread.cpp, javaCalls.cpp, jni.cpp, jvm.cpp.
	"libjvm": {
		"java_start", "thread_native_entry", "Thread::call_run", "JavaThread::run", "JavaThread::thread_main_inner", "thread_entry",
		"JavaCalls::call", "JavaCalls::call_virtual", "JavaCalls::call_static", "JavaCalls::call_helper", "os::os_exception_wrapper",
		"jni_CallStaticVoidMethod", "jni_CallStaticVoidMethodV", "jni_invoke_static",
	},
	// java.base's share/native/libjli/java.c and its parts for each system.
	"libjli": {"JavaMain", "invokeStaticMainWithArgs", "ThreadJavaMain", "CallJavaMainInNewThread", "CallJavaMain", "ContinueInNewThread", "ContinueInNewThread0", "JVMInit", "JLI_Launch"},
	"java":   {"main"},
}

var libcStarters = []string{
	"clone", "clone3", "__clone", "__clone3", "__clone_internal", "start_thread", "__start_thread", "start",
	"__libc_start_main", "__libc_start_main_impl", "__libc_start_main@@GLIBC_2.34", "__libc_start_call_main", "libc_start_main_stage2",
}

// Starts reports whether a function is between the kernel and the first function of a thread or
// program that somebody wrote, and whether it has a name that says so: a function without a name is
// judged by its library.
func Starts(kind walk.Kind, name, module string) (yes, named bool) {
	switch {
	case kind == walk.KindStub:
		return strings.HasSuffix(name, "call_stub"), true
	case kind != walk.KindNative:
		return false, false
	case name == "_start" || name == "_start_c":
		return true, true
	}
	base := path.Base(module)
	for library, functions := range starters {
		rest, its := strings.CutPrefix(base, library)
		if !its || rest != "" && rest[0] != '.' && rest[0] != '-' {
			continue
		}
		if strings.HasPrefix(name, base+"+0x") {
			return true, false
		}
		for _, f := range functions {
			if bare, _, _ := strings.Cut(name, "("); bare == f {
				return true, true
			}
		}
	}
	return false, false
}

// Begins reports whether a function that Starts calls is what the thread is there for: any function
// except the kernel's, the C library's and stubs, which are part of starting it.
func Begins(kind walk.Kind, module string) bool {
	if kind == walk.KindUnknown || kind == walk.KindKernel || kind == walk.KindStub {
		return false
	}
	base := path.Base(module)
	for _, c := range []string{"libc.", "libc-", "ld-", "libpthread", "linux-vdso", "[vdso]"} {
		if kind == walk.KindNative && strings.HasPrefix(base, c) {
			return false
		}
	}
	return true
}
