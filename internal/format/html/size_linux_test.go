package html

import (
	"fmt"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

func median(ms []float64) float64 {
	slices.Sort(ms)
	return ms[len(ms)/2]
}

// TestPageDeep has a stack of 10,000 frames, which is scrolled through.
func TestPageDeep(t *testing.T) {
	b := openPage(t, 1280, 800)
	file := writePage(t, profiletest.Server(30_000, 30_000, 10_000))
	b.open(file, "#icicle=1")
	var rows, height, canvas int
	b.Eval("candid.rows()", &rows)
	b.Eval("document.querySelector('.spacer').offsetHeight", &height)
	b.Eval("document.querySelector('canvas').height", &canvas)
	if rows < 8000 || height < 8000*18 || canvas > 900 {
		t.Errorf("%d rows are %d pixels high on a canvas of %d", rows, height, canvas)
	}
	b.Eval("document.querySelector('.chart').scrollTop = 1e9", nil)
	var colours int
	b.Eval(`(() => {
		candid.redraw();
		const c = document.querySelector('canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
		return new Set(new Uint32Array(d.buffer)).size;
	})()`, &colours)
	if colours < 2 {
		t.Error("nothing is drawn at the far end")
	}
	b.quiet(file)
}

// TestPageSpeed draws graphs of 200,000 and, unless -short, of 1,000,000 nodes
// whole, and waits until they are painted. The bound is far above what it takes
// on an idle machine: the fastest drawing of many is free of most of the noise.
func TestPageSpeed(t *testing.T) {
	for _, nodes := range []int{200_000, 1_000_000} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			if nodes > 200_000 && testing.Short() {
				t.Skip("a million nodes is not for -short")
			}
			b := openPage(t, 1440, 900)
			b.Dark(false)
			file := writePage(t, profiletest.Server(nodes, nodes*3/2, 60))
			b.open(file, "")
			var n, rects int
			b.Eval("candid.nodes()", &n)
			for _, what := range []string{"", "#search=Map"} {
				b.open(file, what)
				var ms []float64
				b.Eval("candid.redraw(15)", &ms)
				b.Eval("candid.rectangles()", &rects)
				m := median(ms)
				t.Logf("%d nodes %s: %d rectangles, fastest %.1f ms, median %.1f ms, slowest %.1f ms", n, what, rects, ms[0], m, ms[len(ms)-1])
				if ms[0] > 60 {
					t.Errorf("a drawing takes %.1f ms at least", ms[0])
				}
			}
			var find float64
			b.Eval(`(() => { const f = document.getElementById('search'), t = performance.now(); f.value = 'get|Service'; f.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'})); return performance.now() - t })()`, &find)
			t.Logf("%d nodes: search %.0f ms", n, find)
			b.quiet(file)
		})
	}
}
