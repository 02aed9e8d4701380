package speedscope

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
)

// The format has no labels: samples with many different ones are in no more states than without.
func TestManyLabels(t *testing.T) {
	for _, call := range []string{"", "read"} {
		b := profile.NewBuilder()
		b.Profile().Events = []profile.Event{profile.NamedEvent("cpu", "nanoseconds", 1)}
		th := b.Thread(1, 1, "main")
		for i := range 5000 {
			s := profile.Sample{Time: uint64(i), Weight: 1, Thread: th}
			s.Syscall, _ = b.Labeled(call, []profile.Label{{Key: "span", Number: int64(i)}})
			if call != "" {
				s.State = profile.StateSleeping
			}
			b.Add(s)
		}
		p := b.Finish()
		var out bytes.Buffer
		if err := Write(&out, p); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), `["sleeping","read"]`); call != "" && n != 1 || call == "" && strings.Contains(out.String(), `"states"`) {
			t.Errorf("in %q: the state is there %d times", call, n)
		}
		back, err := Read(&out)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := told(back), told(p); !slices.Equal(got, want) {
			t.Errorf("in %q: %d samples, want %d; the first is %q, want %q", call, len(got), len(want), got[0], want[0])
		}
	}
}
