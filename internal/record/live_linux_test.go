package record

import (
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// taker receives samples as they come.
type taker struct {
	begun   Begun
	begins  int
	samples int
	weight  uint64
	known   int // samples with a name and a thread of the target
	tables  map[*profile.Builder]bool
	last    Progress
	most    int // greatest number of nodes
}

func (k *taker) Begin(b Begun) { k.begun, k.begins = b, k.begins+1 }

func (k *taker) Sample(b *profile.Builder, s profile.Sample) {
	k.samples++
	k.weight += s.Weight
	if k.tables == nil {
		k.tables = map[*profile.Builder]bool{}
	}
	k.tables[b] = true
	k.most = max(k.most, b.Nodes())
	for n := s.Node; n != profile.RootNode; n = b.At(n).Parent {
		if f := b.Frames()[b.At(n).Frame]; b.Funcs()[f.Func].Name == "main.main" || b.Funcs()[f.Func].Name == "runtime.goexit" || b.Funcs()[f.Func].Name == "github.com/candid-profiler/candid/internal/record.TestMain" {
			if t := b.Threads()[s.Thread]; t.TID > 0 && t.Name != "" {
				k.known++
			}
			return
		}
	}
}

func (k *taker) Batch(_ *profile.Builder, p Progress) { k.last = p }

// takeEnough records for a second, or longer if the target gets so little CPU that there are too
// few samples.
func takeEnough(t *testing.T, pid, tables int) (res *Result, k taker) {
	t.Helper()
	for _, long := range []time.Duration{time.Second, 4 * time.Second, 16 * time.Second} {
		k = taker{}
		if res = run(t, Options{PIDs: []int{pid}, Duration: long, Live: &k}); k.samples >= 50 && len(k.tables) >= tables {
			break
		}
	}
	return res, k
}

// The receiver of samples as they come gets all of them, and the profile none.
func TestLive(t *testing.T) {
	res, k := takeEnough(t, spin(t).Process.Pid, 1)
	if n := len(res.Profile.Samples); n != 0 {
		t.Errorf("the profile has %d samples too", n)
	}
	if k.begins != 1 || k.begun.Engine != res.Profile.Meta.Engine || len(k.begun.Events) != 1 || k.begun.Events[0].Period == 0 {
		t.Errorf("begun %d times: %+v", k.begins, k.begun)
	}
	if k.samples < 50 || uint64(k.samples) != res.Costs.Stats.Samples || k.last.Stats != res.Costs.Stats || k.known*10 < k.samples*9 {
		t.Errorf("%d samples, %d of them known; told last %+v, at the end %+v", k.samples, k.known, k.last, res.Costs.Stats)
	}
	if k.last.Elapsed < time.Second || k.last.OwnCPU <= 0 || len(k.tables) != 1 {
		t.Errorf("%+v, %d tables", k.last, len(k.tables))
	}
}

// The tables behind samples are rebuilt when they have grown, and the samples do not change.
func TestLiveTablesStaySmall(t *testing.T) {
	before := liveLimits
	liveLimits.nodes = 8
	t.Cleanup(func() { liveLimits = before })
	c := spin(t)
	res, k := takeEnough(t, c.Process.Pid, 2)
	if len(k.tables) < 2 || k.known*10 < k.samples*9 || uint64(k.samples) != res.Costs.Stats.Samples {
		t.Errorf("%d tables for %d samples (%d by the engine), %d of them known", len(k.tables), k.samples, res.Costs.Stats.Samples, k.known)
	}
	if got := res.Profile.Processes; len(got) != 1 || got[0].PID != c.Process.Pid || got[0].Command == "" {
		t.Errorf("processes %+v", got)
	}
}
