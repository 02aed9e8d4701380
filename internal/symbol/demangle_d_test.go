package symbol

import "testing"

func TestDemangleD(t *testing.T) {
	for raw, want := range map[string]string{
		"_D4work4growFiZCQo4Node":               "work.grow",
		"_D4work5countFCQn4NodeZi":              "work.count",
		"_D2rt3aaA4Impl4growMFMxC8TypeInfoZv":   "rt.aaA.Impl.grow",
		"_D4work4sizeQfMFZi":                    "work.size.size", // the last name stands for the one 5 back
		"_D4work4mainFZ5innerMFZi":              "_D4work4mainFZ5innerMFZi",
		"_D3std4conv__T2toTAyaZ2toFiZQi":        "_D3std4conv__T2toTAyaZ2toFiZQi",
		"_Dmain":                                "_Dmain",
		"_D4work99999999999999999999999growFZv": "_D4work99999999999999999999999growFZv",
		"_D4workQzzzFZv":                        "_D4workQzzzFZv",
		"_D":                                    "_D",
	} {
		if got := Demangle(raw); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
