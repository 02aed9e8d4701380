package dump

import "testing"

// A compiled frame with unknown parts is not shown as a native one.
func TestJavaText(t *testing.T) {
	bci := int32(7)
	for want, f := range map[string]Frame{
		"A.b(A.java:12)":      {Kind: "C2", File: "com/example/A.java", Line: 12, BCI: &bci},
		"A.b(A.java)":         {Kind: "C2", File: "A.java"},
		"A.b(Unknown Source)": {Kind: "C1"},
		"A.b(Native Method)":  {Kind: "native method", File: "A.java"},
	} {
		if f.Function = "A.b"; f.javaText() != want {
			t.Errorf("%+v: %s, want %s", f, f.javaText(), want)
		}
	}
	if f := (Frame{Function: "A.b", Kind: "interpreted", File: "A.java"}); f.javaText() != "A.b(Native Method)" {
		t.Errorf("a native method that is interpreted: %s", f.javaText())
	}
}
