package javaname

import (
	"strings"
	"testing"
)

func TestParameters(t *testing.T) {
	for descriptor, want := range map[string]string{
		"()V":                                   "()",
		"(I)I":                                  "(int)",
		"(Ljava/lang/String;[IJ)V":              "(String, int[], long)",
		"([[Ljava/util/Map$Entry;ZBCSFD)[La/B;": "(Map$Entry[][], boolean, byte, char, short, float, double)",
		"(LNoPackage;)LNoPackage;":              "(NoPackage)",
		// Text that is not a descriptor is returned unchanged.
		"":                                     "",
		"(":                                    "(",
		"()":                                   "()",
		"(V)V":                                 "(V)V",
		"(I)VV":                                "(I)VV",
		"(L;)V":                                "(L;)V",
		"(Ljava/lang/String)V":                 "(Ljava/lang/String)V",
		"([)V":                                 "([)V",
		"(java.lang.String, int)":              "(java.lang.String, int)",
		"(JavaValue*, methodHandle const&)":    "(JavaValue*, methodHandle const&)",
		"()L;":                                 "()L;", // async-profiler's native code
		"(Lk;)L;":                              "(Lk;)L;",
		"(" + strings.Repeat("[", 256) + "I)V": "(" + strings.Repeat("[", 256) + "I)V",
	} {
		if got := Parameters(descriptor); got != want {
			t.Errorf("%s: %s, not %s", descriptor, got, want)
		}
	}
}

func TestSplit(t *testing.T) {
	for name, want := range map[string][2]string{
		"foo":                         {"foo", ""},
		"foo(Ljava/lang/String;)V":    {"foo", "(Ljava/lang/String;)V"},
		"<init>()V":                   {"<init>", "()V"},
		"lambda$main$0(I)La/B;":       {"lambda$main$0", "(I)La/B;"},
		"(I)V":                        {"(I)V", ""},
		"foo(int)":                    {"foo(int)", ""},
		"operator()(int)":             {"operator()(int)", ""},
		"f(Ljava/lang/String;)V tail": {"f(Ljava/lang/String;)V tail", ""},
	} {
		if method, descriptor := Split(name); method != want[0] || descriptor != want[1] {
			t.Errorf("%s: %q, %q", name, method, descriptor)
		}
	}
}

func FuzzParameters(f *testing.F) {
	for _, s := range []string{"()V", "(Ljava/lang/String;[IJ)V", "([[Lx", "(I"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := Parameters(s); len(got) > 8*len(s)+2 {
			t.Errorf("%q became %q", s, got)
		}
		if method, descriptor := Split(s); method+descriptor != s {
			t.Errorf("%q was split to %q and %q", s, method, descriptor)
		}
	})
}
