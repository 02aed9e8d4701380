package doctor

import (
	"os/exec"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/target"
)

// For a program of node the report says that its functions are named, if they are; Python's are
// not.
func TestRuntimesAreJudged(t *testing.T) {
	node := OK
	if cpu.Host() != cpu.AMD64 {
		node = Limited
	}
	for _, c := range []struct {
		tool, option, program string
		want                  State
	}{
		{"node", "-e", `console.log("ready"); setInterval(() => {}, 1000)`, node},
		{"python3", "-c", `import time; print("ready", flush=True); time.sleep(100)`, Limited},
	} {
		p := fixture.Start(t, exec.Command(fixture.Tool(t, c.tool), c.option, c.program))
		p.Await("ready")
		of, err := target.Open(p.PID())
		if err != nil {
			t.Fatal(err)
		}
		defer of.Close()
		e := &examiner{p: of, t: &Target{}}
		e.runtime()
		if len(e.checks) != 1 || e.checks[0].ID != "target.runtime" || e.checks[0].State != c.want || e.checks[0].Seen != e.t.Runtime || e.checks[0].Means == "" {
			t.Errorf("%s, which is %q: %+v", c.tool, e.t.Runtime, e.checks)
		}
	}
}
