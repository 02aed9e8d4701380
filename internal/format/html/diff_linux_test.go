package html

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestDiffPage compares every frame of the page with the comparison's own call tree, for each
// normalization, and what the page draws of it.
func TestDiffPage(t *testing.T) {
	t.Parallel()
	all := profiletest.Server(3000, 15_000, 30)
	only := func(ignore string) *profile.Profile {
		return profile.Apply(all, profile.Filter{Ignore: regexp.MustCompile(ignore)})
	}
	spec, err := filter.Parse(filter.Words{Event: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	sides, err := diff.Choose([2]string{"/tmp/<b>before</b>.jfr", "after.jfr"}, [2]*profile.Profile{only("NioEventLoop"), only("OrderService")}, spec)
	if err != nil {
		t.Fatal(err)
	}
	b := openPage(t, 1280, 800)
	file := filepath.Join(t.TempDir(), "diff.html")
	for _, how := range []diff.Normalize{diff.Total, diff.Time, diff.None} {
		c, err := diff.Compare(sides[0], sides[1], how)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteDiff(f, c); err != nil {
			t.Fatal(err)
		}
		f.Close()
		b.open(file, "#starts=shown")

		type node struct{ total, self diff.Counts }
		want := map[string]node{}
		nodes := c.Calls()
		for i := range nodes {
			path := ""
			for at := uint32(i); at != 0; at = nodes[at].Parent {
				path = "\x01" + flame.Visible(c.Funcs[nodes[at].Func].Name) + path
			}
			n := want[path] // two functions whose names look the same
			for side := range 2 {
				n.total[side].Add(nodes[i].Total[side])
				n.self[side].Add(nodes[i].Self[side])
			}
			want[path] = n
		}
		var frames []struct {
			Name                         string
			Depth, Change                int
			Total                        float64
			Base, BaseSelf, New, NewSelf float64
		}
		b.Eval("Array.from({length: candid.nodes()}, (_, i) => ({...candid.frame(i), ...candid.sides(i)}))", &frames)
		got := map[string][5]float64{}
		var way []string
		gone, fresh, same := 0, 0, 0
		for i, f := range frames {
			if i > 0 {
				way = append(way[:f.Depth-1], "\x01"+f.Name)
			}
			g := got[strings.Join(way, "")]
			for k, v := range []float64{f.Base, f.BaseSelf, f.New, f.NewSelf, f.Total} {
				g[k] += v
			}
			got[strings.Join(way, "")] = g
			switch f.Change {
			case 0:
				gone++
			case 20:
				fresh++
			case 10:
				same++
			}
		}
		scale := c.Value(0, profile.Count{Weight: 1}) / c.Value(1, profile.Count{Weight: 1})
		wrong := 0
		for path, w := range want {
			g := got[path]
			both := (float64(w.total[1].Weight) + float64(w.total[0].Weight)*scale) / 2
			if g[0] != float64(w.total[0].Weight) || g[1] != float64(w.self[0].Weight) || g[2] != float64(w.total[1].Weight) || g[3] != float64(w.self[1].Weight) ||
				math.Abs(g[4]-both) > 1e-6*math.Max(both, 1) {
				if wrong++; wrong < 4 {
					t.Errorf("%s: %q: the page has %v, want %+v, both %v", how, path, g, w, both)
				}
			}
		}
		if len(got) != len(want) || wrong > 0 {
			t.Errorf("%s: %d of %d frames are wrong; the page has %d", how, wrong, len(want), len(got))
		}
		if gone == 0 || fresh == 0 || same == 0 {
			t.Errorf("%s: %d frames in the colour of what is gone, %d of what is new, %d of what is the same", how, gone, fresh, same)
		}
		// Frames that are gone are absent at the width of new, and vice versa.
		for side, missing := range map[string]string{"base": "NioEventLoop", "new": "OrderService", "both": ""} {
			b.open(file, "#side="+side)
			var sums sums
			b.Eval("candid.sums()", &sums)
			of := c.All[0].Weight
			if side == "new" {
				of = c.All[1].Weight
			}
			if side != "both" && sums.Total != float64(of) {
				t.Errorf("%s: as wide as %s it adds up to %v, want %d", how, side, sums.Total, of)
			}
			for _, name := range []string{"NioEventLoop", "OrderService"} {
				b.open(file, "#side="+side+"&search="+name)
				var found struct{ Nodes, Total float64 }
				b.Eval("candid.matched()", &found)
				if (found.Total == 0) != (name == missing) {
					t.Errorf("%s: as wide as %s %s has %v", how, side, name, found.Total)
				}
			}
		}
	}
	if title := b.Text("document.querySelector('h1').textContent"); title != "b>.jfr → after.jfr" {
		t.Errorf("the title is %q", title)
	}
	b.Eval("candid.select(1)", nil)
	b.Until("document.querySelector('.detail .total')?.textContent.includes('→')")
	b.quiet(file)
}
