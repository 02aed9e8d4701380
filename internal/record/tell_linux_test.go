package record

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// sleepTaker adds up, by thread, time asleep, and when its first part came.
type sleepTaker struct {
	asleep, early map[string]time.Duration
	now           time.Duration
	unnamed       int
}

func (k *sleepTaker) Begin(Begun) {}

func (k *sleepTaker) Sample(b *profile.Builder, s profile.Sample) {
	if s.State < profile.StateSleeping {
		return
	}
	name := b.Threads()[s.Thread].Name
	k.asleep[name] += time.Duration(s.Weight)
	if k.now < 3*time.Second {
		k.early[name] += time.Duration(s.Weight)
	}
	if s.Node == profile.RootNode {
		k.unnamed++
	}
}

func (k *sleepTaker) Batch(_ *profile.Builder, p Progress) { k.now = p.Elapsed }

// The receiver of samples as they come gets sleeps that go on, and none twice.
func TestSleepsThatGoOn(t *testing.T) {
	program := compile(t, "naps")
	for _, how := range [][2]string{{"auto", "wall"}, {"auto", "off-cpu"}, {"suspend", "wall"}} {
		t.Run(strings.Join(how[:], " "), func(t *testing.T) {
			t.Parallel() // it sleeps, and so does candid
			sleepsThatGoOn(t, program, how)
		})
	}
}

func sleepsThatGoOn(t *testing.T, program string, how [2]string) {
	c := exec.Command(program)
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	time.Sleep(200 * time.Millisecond)
	k := sleepTaker{asleep: map[string]time.Duration{}, early: map[string]time.Duration{}}
	begin := time.Now()
	run(t, Options{PIDs: []int{c.Process.Pid}, Engine: how[0], Events: []string{how[1]}, Duration: 5 * time.Second, Live: &k})
	all := time.Since(begin)
	t.Logf("%v: %v of %v, %v of it within 3 s", how, k.asleep, all, k.early)
	for name, got := range k.asleep {
		if k.early[name] < time.Second {
			t.Errorf("%v: %v of %s within 3 s", how, k.early[name], name)
		}
		if got > all || got < 3500*time.Millisecond {
			t.Errorf("%v: %s slept for %v in %v", how, name, got, all)
		}
	}
	if len(k.asleep) != 2 {
		t.Errorf("%v: %v", how, k.asleep)
	}
	if k.unnamed > 0 {
		t.Errorf("%v: %d samples without a stack", how, k.unnamed)
	}
}
