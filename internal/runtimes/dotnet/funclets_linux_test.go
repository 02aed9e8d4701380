package dotnet_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
)

// TestFunclets records a program whose time is spent in handlers. One that its own method calls, at the
// end of a try block, is shown as a part of it. One that the runtime calls because of an exception is
// shown where it runs, with the exception handling in between.
func TestFunclets(t *testing.T) {
	for _, on := range dotnets {
		if on.windows && !fixture.Full(t) {
			continue
		}
		t.Run(on.String(), func(t *testing.T) {
			t.Parallel()
			tooLittle := fixture.Watch(t)
			target := on.start(t, on.compile(t, "testdata/Funclets.cs"), nil)
			p := recorded(t, record.Options{PIDs: []int{target.PID()}, Duration: 1500 * time.Millisecond, Hz: 999, Events: []string{"cpu"}})
			calls := map[string]string{ // what is between Main and Spin
				"Program.Finally": "Program.Finally", "Program.Nested": "Program.Nested", "Program.Loop": "Program.Loop",
				"Program.Recursive": strings.TrimSuffix(strings.Repeat("Program.Recursive ", 4), " "),
			}
			seen, handlers := map[string]int{}, map[string]int{}
			for _, s := range p.Samples {
				stack := managed(p, s.Node)
				stack = stack[max(slices.Index(stack, "Program.Main"), 0):] // a host may have called it
				if len(stack) < 3 || stack[0] != "Program.Main" || stack[len(stack)-1] != "Program.Spin" || profile.CertaintyOf(s.End, s.Flags) != profile.CertaintyComplete {
					continue
				}
				between := stack[1 : len(stack)-1]
				want, ok := calls[between[0]]
				switch got := strings.Join(between, " "); {
				case between[0] == "Program.Caught":
					// The filter runs on top of what has thrown, and so does what catches.
					if got == "Program.Caught" || !slices.Contains(between, "Program.Throw") {
						t.Fatalf("a handler is called by %q", stack)
					}
					handlers[between[len(between)-1]]++
				case !ok || got != want:
					t.Fatalf("the stack is %q", stack)
				}
				seen[between[0]]++
			}
			t.Logf("%v %v %+v", seen, handlers, p.Quality())
			for f := range calls {
				if seen[f] < 20 {
					tooLittle("%d samples of %s", seen[f], f)
				}
			}
			if !t.Skipped() && (handlers["Program.Filter"] == 0 || handlers["Program.Caught"] == 0) {
				tooLittle("of the handlers of an exception there are %v", handlers)
			}
		})
	}
}
