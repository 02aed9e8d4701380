package html

import (
	"bytes"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/web"
)

func page(t testing.TB, p *profile.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p, Options{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSize(t *testing.T) {
	p := profiletest.Server(200_000, 400_000, 60)
	tr, err := flame.Merge(p)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tr.Order); n < 190_000 {
		t.Fatalf("only %d nodes", n)
	}
	size := len(page(t, p))
	t.Logf("%d nodes, %d cells: %d bytes", len(tr.Order), len(tr.Cells), size)
	if size > 2<<20 {
		t.Errorf("%d nodes take %d bytes, want at most 2 MiB", len(tr.Order), size)
	}
}

// TestSelfContained makes sure that the page refers to nothing outside of itself and that no text
// from the target is markup in it.
func TestSelfContained(t *testing.T) {
	p := profiletest.Server(1000, 2000, 20)
	p.Meta.Command = profiletest.Hostile[0] + profiletest.Hostile[1]
	out := string(page(t, p))
	if n := strings.Count(out, "<script"); n != 2 {
		t.Errorf("%d script elements, want the data and the program", n)
	}
	for _, bad := range []string{"<img", "onerror='", `owned"</script>`} {
		if strings.Contains(out, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, u := range regexp.MustCompile(`(?i)(https?:)?//[a-z0-9.-]+\.[a-z]{2,}`).FindAllString(out, -1) {
		if u != "http://www.w3.org" { // the name of a vocabulary, never fetched
			t.Errorf("the page names %s", u)
		}
	}
	for _, must := range []string{hash(web.FlameJS), hash(web.FlameCSS), "default-src 'none'"} {
		if !strings.Contains(out, must) {
			t.Errorf("the policy lacks %s", must)
		}
	}
	for name, s := range map[string]string{"script": web.FlameJS, "style": web.FlameCSS} {
		if strings.Contains(strings.ToLower(s), "</"+name) || strings.Contains(s, "<!--") {
			t.Errorf("the %s would end its element early", name)
		}
	}
}

func TestInvalid(t *testing.T) {
	valid := func() *profile.Profile { return profiletest.Server(100, 100, 5) }
	for name, damage := range map[string]func(p *profile.Profile){
		"no root":        func(p *profile.Profile) { p.Nodes = nil },
		"loop":           func(p *profile.Profile) { p.Nodes[5].Parent = 5 },
		"frame":          func(p *profile.Profile) { p.Nodes[5].Frame = math.MaxUint32 },
		"func":           func(p *profile.Profile) { p.Frames[0].Func = math.MaxUint32 },
		"sample node":    func(p *profile.Profile) { p.Samples[0].Node = math.MaxUint32 },
		"sample thread":  func(p *profile.Profile) { p.Samples[0].Thread = math.MaxUint32 },
		"sample event":   func(p *profile.Profile) { p.Samples[0].Event = math.MaxUint16 },
		"no event table": func(p *profile.Profile) { p.Events = nil },
	} {
		p := valid()
		damage(p)
		if err := Write(io.Discard, p, Options{}); !errors.Is(err, profile.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
	if err := Write(io.Discard, profile.NewBuilder().Profile(), Options{}); err != nil {
		t.Errorf("an empty profile: %v", err)
	}
}

type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	p := profiletest.Server(2000, 4000, 20)
	size := len(page(t, p))
	for _, left := range []int{0, 1000, size / 2, size - 1} {
		if err := Write(&failing{left}, p, Options{}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("after %d bytes: error %v", left, err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	p := profiletest.Server(200_000, 400_000, 60)
	b.ReportAllocs()
	for b.Loop() {
		if err := Write(io.Discard, p, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
