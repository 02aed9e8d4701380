package javaname

import "testing"

func TestFunctionName(t *testing.T) {
	for _, c := range []struct{ class, function, raw string }{
		{"java/util/HashMap", "java.util.HashMap.m", ""},
		{"Top", "Top.m", ""},
		{"a/B$C", "a.B$C.m", ""},
		{"a/B$$Lambda$14", "a.B$$Lambda.m", "a.B$$Lambda$14.m"}, // 8, 11
		{"a/B$$Lambda$14+0x0000000800c03000", "a.B$$Lambda.m", "a.B$$Lambda$14/0x0000000800c03000.m"}, // 17
		{"a/B$$Lambda+0x00007f5b3c001000", "a.B$$Lambda.m", "a.B$$Lambda/0x00007f5b3c001000.m"},       // 21
		{"a/B$$Lambda$14.0x0000000800c03000", "a.B$$Lambda.m", "a.B$$Lambda$14/0x0000000800c03000.m"}, // as async-profiler writes it
		{"java/lang/invoke/LambdaForm$MH+0x0800", "java.lang.invoke.LambdaForm$MH.m", "java.lang.invoke.LambdaForm$MH/0x0800.m"},
		{"sun/reflect/GeneratedMethodAccessor12", "sun.reflect.GeneratedMethodAccessor.m", "sun.reflect.GeneratedMethodAccessor12.m"},
		{"jdk/proxy2/$Proxy31", "jdk.proxy.$Proxy.m", "jdk.proxy2.$Proxy31.m"},
		{"com/sun/proxy/$Proxy3", "com.sun.proxy.$Proxy.m", "com.sun.proxy.$Proxy3.m"},
		{"a/$ProxyFactory", "a.$ProxyFactory.m", ""},
		{"a/Plus+More", "a.Plus+More.m", ""},
	} {
		f, raw := Function(c.class, "m")
		if f != c.function || raw != c.raw {
			t.Errorf("%s: %q, %q; want %q, %q", c.class, f, raw, c.function, c.raw)
		}
	}
}

func TestSource(t *testing.T) {
	for class, want := range map[string]string{
		"java/lang/String": "java.lang.String", "java.lang.String": "java.lang.String", "B": "B", "": "",
		"[B": "byte[]", "[[J": "long[][]", "[Ljava/lang/String;": "java.lang.String[]", "[Ljava.util.HashMap$Node;": "java.util.HashMap$Node[]",
		"[": "[", "[X": "[X", "[L": "[L", "[java/lang/String": "[java/lang/String", "[;": "[;",
	} {
		if got := Source(class); got != want {
			t.Errorf("%q is %q, want %q", class, got, want)
		}
	}
}
