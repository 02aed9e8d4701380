package hotspot

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// oracleRun is a configuration of the VM and the thread that is stepped in it.
type oracleRun struct {
	jdk   int
	mode  string
	flags string
	warm  time.Duration // before the first instruction
	steps int           // in total
	full  bool          // only with CANDID_ORACLE set
}

func (r oracleRun) name() string {
	n := fmt.Sprintf("%d/%s", r.jdk, r.mode)
	if r.flags != "" {
		n += "/" + strings.ReplaceAll(r.flags, " ", "")
	}
	return n
}

// oracleRuns are the configurations of one JDK.
func oracleRuns(jdk int) []oracleRun {
	runs := []oracleRun{
		{jdk, "mixed", "", 3 * time.Second, 24000, false},
		{jdk, "mixed", "-Xint", time.Second, 5000, false},
	}
	add := func(full bool, mode, flags string, jdks ...int) {
		for _, j := range jdks {
			if j == jdk {
				runs = append(runs, oracleRun{jdk, mode, flags, 3 * time.Second, 12000, full})
			}
		}
	}
	add(false, "basic", "-XX:TieredStopAtLevel=1", 8, 17, 25)
	add(false, "poll", "", 11, 27)
	add(false, "mixed", "-XX:+PreserveFramePointer", 17)
	add(false, "mixed", "-XX:+UseZGC", 21)
	const entries = "-XX:+UnlockDiagnosticVMOptions -XX:+UnlockExperimentalVMOptions -XX:DisableIntrinsic=_Reference_get,_dsin,_dcos,_dpow,_dsqrt,_dabs,_updateCRC32,_updateBytesCRC32 " +
		"-XX:CompileCommand=quiet -XX:CompileCommand=exclude,java.lang.ref.Reference::get -XX:CompileCommand=exclude,java.lang.Math::* -XX:CompileCommand=exclude,java.util.zip.CRC32::*"
	if jdk == 17 {
		runs = append(runs, oracleRun{jdk, "entries", entries + " -XX:+UseZGC", 3 * time.Second, 4000, false})
	}
	add(true, "entries", entries+" -XX:+UseZGC", 11, 21, 25)
	add(true, "entries", entries+" -XX:+UseShenandoahGC", 11, 17, 21, 25)
	add(true, "entries", entries+" -XX:+UseG1GC", 8, 11, 17, 21, 25)
	add(true, "entries", "-Xint", 8, 11, 17, 21, 25, 27)
	add(true, "basic", "-XX:TieredStopAtLevel=1", 11, 21, 27)
	add(true, "poll", "", 8, 17, 21, 25)
	for _, mode := range []string{"basic", "intrinsics", "vectors", "handles"} {
		add(true, mode, "", 8, 11, 17, 21, 25, 27)
	}
	add(true, "mixed", "-XX:+PreserveFramePointer", 8, 11, 21, 25, 27)
	add(true, "mixed", "-XX:+UseZGC", 17, 25, 27)
	add(true, "mixed", "-XX:+UseParallelGC", 8, 11, 17, 21, 25, 27)
	add(true, "mixed", "-XX:+UseSerialGC", 8, 11, 17, 21, 25, 27)
	add(true, "mixed", "-XX:+UseG1GC -Xmx512m -XX:+AlwaysActAsServerClassMachine", 8, 11, 17, 21, 25, 27)
	add(true, "mixed", "-XX:+UseShenandoahGC", 17, 21, 25, 27)
	add(true, "basic", "-XX:-UseTLAB", 8, 17, 21, 25, 27)
	add(true, "mixed", "-XX:-SegmentedCodeCache", 11, 25)
	add(true, "mixed", "-XX:+UseCompactObjectHeaders", 25, 27)
	add(true, "mixed", "-XX:-TieredCompilation", 8, 11, 17, 21, 25, 27)
	add(true, "mixed", "-XX:TieredStopAtLevel=2", 8, 17, 25)
	add(true, "mixed", "-XX:TieredStopAtLevel=3", 8, 11, 21, 27)
	add(true, "mixed", "-XX:TieredStopAtLevel=1 -XX:+PreserveFramePointer", 11, 21, 25)
	add(true, "mixed", "-Xcomp", 8, 11, 17, 21, 25, 27)
	add(true, "mixed", "-XX:-UseCompressedOops", 8, 11, 17, 21, 25, 27)
	add(true, "poll", "-XX:+UseCountedLoopSafepoints -XX:LoopStripMiningIter=1", 11, 17, 21, 25, 27)
	add(true, "vectors", "-XX:UseAVX=0", 8, 11, 17, 21, 25, 27)
	add(true, "vectors", "-XX:UseAVX=1", 11, 25)
	add(true, "mixed", "-XX:UseSSE=2 -XX:UseAVX=0", 8, 17, 25)
	add(true, "mixed", "-XX:+UnlockDiagnosticVMOptions -XX:+StressLCM -XX:+StressGCM", 17, 21, 25, 27)
	add(true, "mixed", "-XX:+UnlockDiagnosticVMOptions -XX:+StressIGVN -XX:+StressCCP", 21, 25, 27)
	add(true, "mixed", "-XX:+UnlockDiagnosticVMOptions -XX:GuaranteedSafepointInterval=1", 8, 17)
	add(true, "mixed", "-XX:-UseOnStackReplacement", 8, 17, 25)
	add(true, "mixed", "-XX:-Inline", 8, 11, 17, 21, 25, 27)
	add(true, "mixed", "-XX:+UnlockDiagnosticVMOptions -XX:-UseSHA -XX:-UseAES", 8, 25)
	add(true, "mixed", "-XX:LockingMode=1", 21, 25)
	add(true, "mixed", "-XX:-UseBiasedLocking", 8, 11)
	add(true, "mixed", "-XX:-UseOptoBiasInlining -XX:+UseBiasedLocking -XX:BiasedLockingStartupDelay=0", 8, 11)
	add(true, "mixed", "-XX:-DoEscapeAnalysis", 8, 17, 25)
	return runs
}

// renamedIntrinsics returns the flags of a configuration with the name that its JDK gives to the intrinsic of
// Reference.get: since 26, and in updates of earlier ones (21.0.13), it is that of get0.
func renamedIntrinsics(t *testing.T, r oracleRun) string {
	const name = "_Reference_get,"
	if !strings.Contains(r.flags, name) {
		return r.flags
	}
	err := exec.Command(fixture.JDKTool(t, r.jdk, "java"), "-XX:+UnlockDiagnosticVMOptions", "-XX:DisableIntrinsic=_Reference_get", "-version").Run()
	if err == nil {
		return r.flags
	}
	return strings.Replace(r.flags, name, "_Reference_get0,", 1) + " -XX:CompileCommand=exclude,java.lang.ref.Reference::get0"
}
