package html

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

func median(ms []float64) float64 {
	slices.Sort(ms)
	return ms[len(ms)/2]
}

// TestPageDeep scrolls through a stack of 10,000 frames.
func TestPageDeep(t *testing.T) {
	t.Parallel()
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

// TestPageSpeed draws whole graphs of 200,000 and, unless -short, of 1,000,000 nodes. How long that
// takes is measured by the benchmark ("flame graph, a frame"). This test checks how much is drawn,
// on which the time depends: what can be distinguished on the screen, however many nodes there are.
func TestPageSpeed(t *testing.T) {
	t.Parallel()
	sizes := []int{200_000}
	if fixture.Full(t) {
		sizes = append(sizes, 1_000_000)
	}
	for _, nodes := range sizes {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			b := openPage(t, 1440, 900)
			b.Dark(false)
			file := writePage(t, profiletest.Server(nodes, nodes*3/2, 60))
			b.open(file, "")
			var n int
			b.Eval("candid.nodes()", &n)
			if n < nodes {
				t.Fatalf("%d nodes of %d are there", n, nodes)
			}
			for _, what := range []string{"", "#search=Map"} {
				b.open(file, what)
				var ms []float64
				b.Eval("candid.redraw(15)", &ms)
				var rects, rows int
				b.Eval("candid.rectangles()", &rects)
				b.Eval("candid.rows()", &rows)
				t.Logf("%d nodes, %d rows %s: %d rectangles, median %.1f ms", n, rows, what, rects, median(ms))
				// Rectangles are at least a pixel wide, and some 40 rows are visible at a time.
				// Most rectangles are some ten pixels wide.
				if rects < 100 || rects > 1440*40/8 {
					t.Errorf("a drawing has %d rectangles", rects)
				}
			}
			var found string
			b.Eval(`(() => { const f = document.getElementById('search'); f.value = 'get|Service'; f.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'})); return document.getElementById('found').textContent })()`, &found)
			if !strings.Contains(found, "%") {
				t.Errorf("the search says %q", found)
			}
			b.quiet(file)
		})
	}
}
