package jfr

import (
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
)

// TestObservationDefs checks that each kind has a name in files, and each of its values one too.
func TestObservationDefs(t *testing.T) {
	names := map[string]bool{}
	for kind := range profile.ObservationKinds {
		k, def := &profile.ObservationKinds[kind], &observationDefs[kind]
		if k.Name == "" || def.name == "" || names[def.name] {
			t.Errorf("kind %d is called %q, and %q in files", kind, k.Name, def.name)
		}
		names[def.name] = true
		if len(def.fields) != len(k.Values) || len(k.Values) == 0 {
			t.Errorf("%s has %d values and %d names for them", k.Name, len(k.Values), len(def.fields))
		}
		for i, f := range def.fields {
			if f.name == "" || f.label == "" {
				t.Errorf("%s: value %d is called %q, %q", k.Name, i, f.name, f.label)
			}
		}
	}
	if at := observationDefs[profile.CompilerStatistics].fields[9].name; at != "peakTimeSpent" {
		t.Errorf("value 9 of compilations, which only the VM knows, is called %s", at)
	}
}
