package attribution

import (
	"testing"

	"github.com/candid-profiler/candid/internal/walk"
)

// A function with a name of its own is no start, wherever it is called from.
func TestStarts(t *testing.T) {
	for _, c := range []struct {
		kind         walk.Kind
		name, module string
		yes, named   bool
	}{
		{walk.KindNative, "clone3", "/usr/lib/x86_64-linux-gnu/libc.so.6", true, true},
		{walk.KindNative, "start_thread", "libc-2.31.so", true, true},
		{walk.KindNative, "start_thread", "libpthread-2.31.so", true, true},
		{walk.KindNative, "start", "ld-musl-x86_64.so.1", true, true},
		{walk.KindNative, "_start", "/opt/shop/server", true, true},
		{walk.KindNative, "JavaCalls::call_helper(JavaValue*, methodHandle const&)", "libjvm.so", true, true},
		{walk.KindNative, "libjvm.so+0x7ca290", "/opt/jdk/lib/server/libjvm.so", true, false},
		{walk.KindStub, "StubRoutines::call_stub", "", true, true},
		{walk.KindNative, "main", "/opt/jdk/bin/java", true, true},
		{walk.KindNative, "main", "/opt/shop/server", false, false},
		{walk.KindNative, "main", "javac", false, false},
		{walk.KindNative, "start_thread", "/opt/shop/server", false, false},
		{walk.KindNative, "qsort", "libc.so.6", false, false},
		{walk.KindNative, "libcurl.so.4+0x10", "libcurl.so.4", false, false},
		{walk.KindNative, "CompileBroker::compiler_thread_loop", "libjvm.so", false, false},
		{walk.KindStub, "jbyte_disjoint_arraycopy", "", false, false},
		{walk.KindInterpreted, "java.lang.Thread.run", "", false, false},
		{walk.KindKernel, "start_thread", "[kernel]", false, false},
	} {
		if yes, named := Starts(c.kind, c.name, c.module); yes != c.yes || yes && named != c.named {
			t.Errorf("%s of %s: %v, %v", c.name, c.module, yes, named)
		}
	}
}
