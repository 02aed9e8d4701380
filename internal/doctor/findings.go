package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// jvmChecks explains a Java VM's flags.
func jvmChecks(j *JVM) []Check {
	var out []Check
	gc := Check{ID: "target.jvm.gc", Group: groupTarget, Name: "collector", State: OK, Seen: j.GC, Means: "candid works the same with every collector"}
	if gc.Seen == "" {
		gc.Seen = "unknown"
	}
	out = append(out, gc)
	if v, ok := j.Flags["DebugNonSafepoints"]; ok {
		c := Check{ID: "target.jvm.DebugNonSafepoints", Group: groupTarget, Name: "DebugNonSafepoints", State: OK, Seen: v, Means: "the place of a sample inside inlined methods is exact"}
		if v == "false" {
			c.State = Limited
			c.Means = "which inlined method a sample lies in is known only near calls and safepoints: the innermost one may be its neighbour. Costs nothing to turn on, when the VM starts"
			c.Fix = &Fix{"java -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints ...", "exact places inside inlined methods (candid record -- java ... sets it by itself)"}
		}
		out = append(out, c)
	}
	if v, ok := j.Flags["PreserveFramePointer"]; ok {
		out = append(out, Check{ID: "target.jvm.PreserveFramePointer", Group: groupTarget, Name: "PreserveFramePointer", State: OK, Seen: v,
			Means: "not needed: Java frames are walked by the VM's own tables"})
	}
	notes := Check{ID: "target.jvm.notes", Group: groupTarget, Name: "VM's tables", State: OK, Seen: "complete", Means: "everything that candid reads is published by this VM"}
	if len(j.Notes) > 0 {
		notes.State, notes.Seen, notes.Means = Limited, plural(len(j.Notes), "gap", "gaps"), strings.Join(j.Notes, "; ")
	}
	return append(out, notes)
}

// symbolCheck summarizes all modules in one line.
func symbolCheck(modules []Module) Check {
	c := Check{ID: "target.symbols", Group: groupTarget, Name: "symbols", State: OK, Seen: plural(len(modules), "module", "modules"), Means: "every module names its functions and can be unwound"}
	var nameless, few, bare int
	var packages []string
	for _, m := range modules {
		switch {
		case m.State == No:
			nameless++
		case m.Symbols == "dynsym only":
			few++
		}
		if !m.Unwind {
			bare++
		}
		if m.Package != "" && !slices.Contains(packages, m.Package) {
			packages = append(packages, m.Package)
		}
	}
	var parts []string
	if few > 0 {
		parts = append(parts, fmt.Sprintf("%d with exported names only: other functions show as module+offset", few))
	}
	if nameless > 0 {
		parts = append(parts, fmt.Sprintf("%d without names", nameless))
	}
	if bare > 0 {
		parts = append(parts, fmt.Sprintf("%d without unwind tables: candid reads the code instead", bare))
	}
	if len(parts) > 0 {
		c.State, c.Means = Limited, strings.Join(parts, "; ")
	}
	if len(packages) > 0 {
		slices.Sort(packages)
		// apt installs none of its packages if it does not know one.
		var commands, made, apart []string
		for _, p := range packages {
			if strings.HasSuffix(p, "-dbgsym") {
				apart = append(apart, p)
			} else {
				made = append(made, p)
			}
		}
		c.Fix = &Fix{Gain: "names of functions that are not exported"}
		if len(made) > 0 {
			commands = append(commands, "sudo apt install "+strings.Join(made, " "))
		}
		if len(apart) > 0 {
			commands = append(commands, "sudo apt install "+strings.Join(apart, " "))
			c.Fix.Gain += "; -dbgsym packages need Debian's archive of debug symbols among apt's sources"
		}
		c.Fix.Command = strings.Join(commands, "; ")
	}
	return c
}
