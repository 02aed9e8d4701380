package symbol

import "testing"

// The expected names are those of llvm-undname, without types.
func TestMicrosoft(t *testing.T) {
	for raw, want := range map[string]string{
		"?topLevelExceptionFilter@@YAJPEAU_EXCEPTION_POINTERS@@@Z": "topLevelExceptionFilter",
		"?area@Square@shapes@@UEBAJJ@Z":                            "shapes::Square::area",
		"??0Square@shapes@@QEAA@XZ":                                "shapes::Square::Square",
		"??1Square@shapes@@QEAA@XZ":                                "shapes::Square::~Square",
		"??4Square@@QEAAAEAU0@AEBU0@@Z":                            "Square::operator=",
		"??_GSquare@@UEAAPEAXI@Z":                                  "Square::`scalar deleting destructor'",
		"?run@?A0x1234abcd@@YAXXZ":                                 "(anonymous namespace)::run",
		"?f@?$vector@H@std@@QEAAXXZ":                               "",
		"?f@a@0@YAXXZ":                                             "f::a::f",
		"?f@g":                                                     "",
		"main":                                                     "",
		"?":                                                        "",
		"??":                                                       "",
		"??0":                                                      "",
	} {
		if got, ok := demangleMicrosoft(raw); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, not %q", raw, got, ok, want)
		}
	}
}

func FuzzMicrosoft(f *testing.F) {
	f.Add("??0Square@shapes@@QEAA@XZ")
	f.Add("?f@a@0@@YAXXZ")
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := demangleMicrosoft(s); ok && got == "" {
			t.Fatalf("%q has no name", s)
		}
	})
}
