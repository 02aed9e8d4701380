package main

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
)

// edge is what a recording in an extreme case contains.
type edge struct {
	profile.Quality
	lost    uint64
	rss     float64 // bytes
	profile *profile.Profile
}

func readEdge(t *testing.T, file, summary string) edge {
	t.Helper()
	var sum struct {
		MaxRSS float64 `json:"max_rss_bytes"`
	}
	if err := json.Unmarshal([]byte(summary[max(strings.IndexByte(summary, '{'), 0):]), &sum); err != nil {
		t.Fatalf("%v: %s", err, summary)
	}
	p, err := format.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	e := edge{Quality: p.Quality(), lost: p.Losses.Lost, rss: sum.MaxRSS, profile: p}
	if e.Samples == 0 {
		t.Fatal("no samples")
	}
	if e.rss == 0 || e.rss > 150e6 {
		t.Errorf("candid had %.0f MB", e.rss/1e6)
	}
	return e
}

// under returns the weight of the samples with a function on the stack.
func (e *edge) under(name string) (w float64) {
	for _, s := range e.profile.Samples {
		for n := s.Node; n != profile.RootNode; n = e.profile.Nodes[n].Parent {
			if e.profile.Funcs[e.profile.Frames[e.profile.Nodes[n].Frame].Func].Name == name {
				w += float64(s.Weight)
				break
			}
		}
	}
	return w
}

// A recursion of 10,000 frames is shown to its end, although its stack is larger than what is
// copied.
func TestTenThousandFrames(t *testing.T) {
	launcher, classes := java(t)
	target := start(t, exec.Command(launcher, "-Xss64m", "-cp", classes, "Deep", "600", "10000"))
	file := filepath.Join(t.TempDir(), "deep.pb.gz")
	await(t, "the recursion to be deep", func() bool {
		r := candid(t, "record", "-q", "--json", "--force", "-F", "499", "-d", "1s", "-p", target.pid(), "-o", file)
		if !sampled(r) {
			return false // it got no CPU
		}
		if r.code != exitOK {
			t.Fatalf("exit code %d\n%s", r.code, r.err)
		}
		e := readEdge(t, file, r.out)
		deep, spinning := 0, 0
		for _, s := range e.profile.Samples {
			n, spin := 0, false
			for at := s.Node; at != profile.RootNode; at = e.profile.Nodes[at].Parent {
				n++
				spin = spin || e.profile.Funcs[e.profile.Frames[e.profile.Nodes[at].Frame].Func].Name == "Deep.spin"
			}
			if spin {
				spinning++
				if n > 10000 {
					deep++
				}
			}
		}
		whole := e.Complete + e.Stitched
		t.Logf("%d samples, %d complete, %d of %d at the recursion's end with all frames; %.0f MB", e.Samples, whole, deep, spinning, e.rss/1e6)
		if spinning == 0 {
			return false
		}
		if 100*deep < 99*spinning || 100*whole < 99*e.Samples {
			t.Errorf("of %d samples %d are complete; of %d at the recursion's end %d have all frames", e.Samples, whole, spinning, deep)
		}
		return true
	})
}

// Thousands of threads that hardly ever run are recorded as well as a few that do.
func TestFiveThousandThreads(t *testing.T) {
	launcher, classes := java(t)
	target := start(t, exec.Command(launcher, "-cp", classes, "Crowd", "5000", "600"))
	target.wait(t, "ready")
	file := filepath.Join(t.TempDir(), "crowd.pb.gz")
	r := ok(t, "record", "-q", "--json", "-F", "997", "-d", "3s", "-p", target.pid(), "-o", file)
	e := readEdge(t, file, r.out)
	threads := map[uint32]bool{}
	for _, s := range e.profile.Samples {
		threads[s.Thread] = true
		if name := e.profile.Threads[s.Thread].Name; name == "" {
			t.Fatal("a thread has no name")
		}
	}
	whole := e.Complete + e.Stitched
	t.Logf("%d samples of %d threads, %d complete, %d lost; %.0f MB", e.Samples, len(threads), whole, e.lost, e.rss/1e6)
	if len(threads) < 100 {
		t.Errorf("%d threads were seen", len(threads))
	}
	if 100*whole < 99*e.Samples {
		t.Errorf("%d of %d stacks are complete", whole, e.Samples)
	}
}

// A thousand threads a second that live 200 µs each are credited with the time that they use.
func TestThousandBirthsASecond(t *testing.T) {
	launcher, classes := java(t)
	file := filepath.Join(t.TempDir(), "births.pb.gz")
	began := time.Now()
	c := command(t, "record", "-q", "--json", "-F", "1500", "-o", file, "--", "sh", "-c", `exec "$@" >births.out`, "sh", launcher, "-cp", classes, "Births", "4")
	r := finish(t, c)
	if r.code != 0 {
		t.Fatalf("%d: %s", r.code, r.err)
	}
	e := readEdge(t, file, r.err)
	var truth struct{ Born, Threads float64 }
	text, err := os.ReadFile(filepath.Join(c.Dir, "births.out"))
	if err != nil {
		t.Fatal(err)
	}
	out := strings.TrimSpace(string(text))
	if err := json.Unmarshal([]byte(out), &truth); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	seen := e.under("Births.life")
	samples := seen / (1e9 / 1500)
	t.Logf("%.0f threads in %v: %.0f ms by their own account, %.0f ms seen; %d lost; %.0f MB", truth.Threads, time.Since(began).Round(time.Millisecond), truth.Born/1e6, seen/1e6, e.lost, e.rss/1e6)
	if e.lost > 0 {
		t.Errorf("%d samples were lost", e.lost)
	}
	// Four standard deviations, and the clock error of a loaded machine.
	if off := math.Abs(seen/truth.Born - 1); off > 4/math.Sqrt(samples)+0.05 {
		t.Errorf("their share is off by %.1f %% with %.0f samples", 100*off, samples)
	}
}
