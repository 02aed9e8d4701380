package dotnet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/record"
)

// TestChainOnWindows is TestChain with .NET for Windows, which runs in Wine.
func TestChainOnWindows(t *testing.T) {
	for _, major := range fixture.WindowsDotNets {
		assembly := fixture.CSharp(t, major, "testdata/Chain.cs")
		for _, c := range configurations {
			if c.full && !fixture.Full(t) {
				continue
			}
			t.Run(fmt.Sprintf("%d %s", major, c.name), func(t *testing.T) {
				t.Parallel()
				tooLittle := fixture.Watch(t)
				cmd := fixture.WindowsDotNetCommand(t, major, assembly)
				cmd.Env = append(cmd.Environ(), c.env...)
				target := fixture.Start(t, cmd)
				target.Await("ready")
				long := 1500 * time.Millisecond
				if fixture.Full(t) {
					long = 10 * time.Second
				}
				p := recorded(t, record.Options{PIDs: []int{target.PID()}, Duration: long, Hz: 999, Events: []string{"cpu"}})
				checkChain(t, p, tooLittle)
				checkLines(t, p)
			})
		}
	}
}
