package doctor

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/candid-profiler/candid/internal/confine"
)

// kept are the names of the capabilities that candid may keep while it records
// (include/uapi/linux/capability.h).
var kept = []struct {
	bit  int
	name string
}{
	{1, "DAC_OVERRIDE"}, {2, "DAC_READ_SEARCH"}, {3, "FOWNER"}, {14, "IPC_LOCK"}, {capSysPtrace, "SYS_PTRACE"}, {capSysAdmin, "SYS_ADMIN"},
	{23, "SYS_NICE"}, {capSyslog, "SYSLOG"}, {capPerfmon, "PERFMON"}, {capBPF, "BPF"}, {40, "CHECKPOINT_RESTORE"},
}

// checkKept says what candid keeps of its privileges while it records a process.
func (f *facts) checkKept() Check {
	c := Check{ID: "privileges.kept", Group: groupPrivileges, Name: "kept while recording", State: OK}
	const filtered = "; system calls that it does not make are refused, and no program that it starts gains any"
	keeps := confine.Sampler{}.Kept(f.effective)
	switch {
	case f.effective == 0:
		c.Seen, c.Means = "none", "there are none to give up"+filtered
		return c
	case keeps == f.effective && !f.ptrace():
		c.Seen = "all that it has"
		c.Means = "without CAP_SYS_PTRACE a process with a capability that candid has given up could not be read" + filtered
		return c
	}
	var names []string
	for _, k := range kept {
		if keeps>>k.bit&1 != 0 {
			names = append(names, k.name)
		}
	}
	c.Seen = fmt.Sprintf("%d of %s", bits.OnesCount64(keeps), plural(bits.OnesCount64(f.effective), "capability", "capabilities"))
	c.Means = "record, top and dump give up all but " + strings.Join(names, ", ") + filtered
	return c
}
