package javaname

import "testing"

func TestPerfMap(t *testing.T) {
	for _, c := range []struct {
		name, function, raw, signature string
		ok                             bool
	}{
		{"int java.lang.String.hashCode()", "java.lang.String.hashCode", "", "()", true},
		{"java.lang.Object[] java.util.Arrays.copyOf(java.lang.Object[], int)", "java.util.Arrays.copyOf", "", "(java.lang.Object[], int)", true},
		{"void a.B$$Lambda+0x00007f5b3c001000.run()", "a.B$$Lambda.run", "a.B$$Lambda/0x00007f5b3c001000.run", "()", true},
		{"void Chain.<init>(long)", "Chain.<init>", "", "(long)", true},
		{"Ljava/util/HashMap;::get", "java.util.HashMap.get", "", "", true},
		{"Interpreter", "", "", "", false},
		{"LazyCompile:*fib /x.js:1:2", "", "", "", false},
		{"void [System.Private.CoreLib] System.Foo::Bar(int32)", "", "", "", false},
		{"py::run:/x.py", "", "", "", false},
		{"flush_icache_stub", "", "", "", false},
		{"std::sort(int*)", "", "", "", false},
		{"", "", "", "", false}, {"(", "", "", "", false}, {"L;::", ".", "", "", true},
	} {
		f, raw, sig, ok := PerfMap(c.name)
		if f != c.function || raw != c.raw || sig != c.signature || ok != c.ok {
			t.Errorf("%q: %q, %q, %q, %v", c.name, f, raw, sig, ok)
		}
	}
}
