package record

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// shareJDKs are the versions on which Java's time is compared with the threads' own accounts.
var shareJDKs = []int{8, 17, 25}

// javaShares returns the command that runs workloads/Shares.java.
func javaShares(t *testing.T, major int) []string {
	t.Helper()
	classes := fixture.Classes(t, major, filepath.Join("..", "..", "workloads", "Shares.java"))
	return []string{fixture.JDKTool(t, major, "java"), "-Xmx64m", "-cp", classes, "Shares", "2"}
}

// Java threads sleep, wait for a monitor, for data, for the disk and parked, and compute. Wall time
// and time off the CPU agree with the kernel's account of each thread, and with what each measured
// in the method that it waits in, within 2 % of its time. A collection that stops a thread on its
// way into the method is in one of them and not in the other: that takes another attempt.
func TestWallTruthOfJava(t *testing.T) {
	for _, major := range shareJDKs {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			command := javaShares(t, major)
			fixture.Attempts(t, 8, func() (wrong string) {
				p, list := recordKnown(t, Options{Events: []string{"wall", "off-cpu"}, Hz: 499}, command...)
				for _, k := range list {
					wrong += k.compareWall(t, p) + k.compareSleep(t, p, 1)
				}
				return wrong
			})
		})
	}
}

// The same holds without BPF, with attempts as in TestWallTruthWithoutBPF.
func TestWallTruthOfJavaWithoutBPF(t *testing.T) {
	for _, major := range shareJDKs {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			command := javaShares(t, major)
			fixture.Attempts(t, 8, func() (wrong string) {
				p, list := recordKnown(t, Options{Engine: "suspend", Events: []string{"wall"}, Hz: 499}, command...)
				for _, k := range list {
					wrong += k.compareWall(t, p)
				}
				return wrong
			})
		})
	}
}
