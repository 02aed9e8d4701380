package jfr

import "testing"

func TestWithoutHash(t *testing.T) {
	for class, want := range map[string]string{
		"Busy$$Lambda$52/758013696":             "Busy$$Lambda$52",
		"a/b/C$$Lambda+0x00007f1234567890/1234": "a/b/C$$Lambda+0x00007f1234567890",
		"java/lang/invoke/LambdaForm$MH/99":     "java/lang/invoke/LambdaForm$MH",
		"a/b/C":                                 "a/b/C",
		"a/b/":                                  "a/b/",
		"C":                                     "C",
		"/1":                                    "/1",
		"a/C1":                                  "a/C1",
	} {
		if got := withoutHash(class); got != want {
			t.Errorf("%s: %s, want %s", class, got, want)
		}
	}
}
