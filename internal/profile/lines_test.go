package profile_test

import (
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestLines checks that a method's lines add up to the method, and that a stack counts once for
// each line of a recursive one.
func TestLines(t *testing.T) {
	p := profiletest.Java()
	whole, lines := p.Select(profile.Filter{}), p.Select(profile.Filter{Lines: true})
	self := map[string]uint64{}
	for _, m := range lines.List() {
		name := lines.Name(m.Method)
		if line := lines.Methods[m.Method].Line; line > 0 {
			name = name[:strings.LastIndexByte(name, ':')]
		}
		self[name] += m.Self.Samples
	}
	split := 0
	for _, m := range whole.List() {
		name := whole.Name(m.Method)
		if self[name] != m.Self.Samples {
			t.Errorf("%s: the lines have %d samples, the method %d", name, self[name], m.Self.Samples)
		}
	}
	totals := map[string]uint64{}
	for _, m := range lines.List() {
		totals[lines.Name(m.Method)] = m.Total.Samples
		if strings.HasPrefix(lines.Name(m.Method), "java.util.HashMap.get:") {
			split++
		}
	}
	if split != 2 || totals["java.util.HashMap.get:556"] != 2400 || totals["java.util.HashMap.get:557"] != 1500 || totals["com.example.shop.Rules.evaluate:77"] != 1500 {
		t.Errorf("%d lines of HashMap.get; %v", split, totals)
	}
	if all, want := lines.Calls().Nodes[0].Total, whole.Chosen; all != want {
		t.Errorf("the tree has %v of %v", all, want)
	}
}
