package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/candid-profiler/candid/internal/chromium"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// tableMeasures are the scripts that measure tables: each returns milliseconds. frames returns the
// time between two pictures while something scrolls in each; what they show is laid out.
const tableMeasures = `
window.pane = (tab) => document.getElementById('pane-' + tab);
window.frames = async (n, e, by) => {
  const out = [];
  let last = 0;
  for (let i = 0; i <= n; i++) {
    const now = await new Promise(r => requestAnimationFrame(r));
    if (last) out.push(now - last);
    last = now;
    e.scrollTop += by;
  }
  return out;
};
window.laid = (tab, f) => {
  const start = performance.now();
  f();
  pane(tab).getBoundingClientRect();
  return performance.now() - start;
};
window.press = (tab, column) => laid(tab, () => pane(tab).querySelector('[data-id="' + column + '"] button').click());
window.type = (tab, text) => laid(tab, () => {
  const f = pane(tab).querySelector('input[type=search]');
  f.value = text;
  f.dispatchEvent(new Event('input'));
});
`

// tables measures tables and lanes as long as those of large programs.
func (b *bench) tables() {
	const what = "100,000 methods, 10,000 threads"
	file := filepath.Join(b.work, "wide.jfr")
	if err := writeProfile(file, "jfr", profiletest.Wide(100_000, 10_000, 400_000)); err != nil {
		b.add(row{Section: "view", What: what, Failed: err.Error()})
		return
	}
	b.page(what, file, func(c *chromium.Browser, show func() (time.Duration, time.Duration)) {
		add := func(name, bar, script string) { b.timed(c, name+", "+what, bar, script) }
		loaded, _ := show()
		b.add(row{Section: "view", What: "load, " + what, Value: loaded.Seconds(), Unit: "s"})
		c.Eval(tableMeasures, nil)
		const frame = "≤ 30 ms"
		c.Call("Performance.enable", map[string]any{"timeDomain": "threadTicks"}, nil)
		// The time between frames is a multiple of the screen's; the work of the page's thread for
		// a frame shows more.
		scroll := func(name, tab, element string, n, by int) {
			before := pageWork(c)
			add("scrolling "+name+", a frame", frame, fmt.Sprintf("frames(%d, pane('%s').querySelector('%s'), %d)", n, tab, element, by))
			b.add(row{Section: "view", What: "scrolling " + name + ", CPU time of the page's thread for a frame, " + what, Value: (pageWork(c) - before) / float64(n), Unit: "ms"})
		}
		c.Eval("timed({tab: 'methods'})", nil)
		scroll("methods by rows", "methods", ".grid-scroll", 40, 120)
		scroll("methods by thousands", "methods", ".grid-scroll", 40, 40000)
		add("sorting methods by a number", "", "several(5, (i) => press('methods', ['total', 'self'][i % 2]))")
		add("sorting methods by name", "", "several(5, () => press('methods', 'name'))")
		add("searching the methods", "", "several(8, (i) => laid('methods', () => candid.set({query: ['Service12', 'method.*7$', 'part3', ''][i % 4]})))")
		c.Eval("timed({query: '', tab: 'tree'})", nil)
		add("scrolling the call tree, a frame", frame, "frames(40, pane('tree').querySelector('.grid-scroll'), 120)")
		c.Eval("timed({tab: 'callers', of: ''})", nil)
		add("scrolling the callers, a frame", frame, "frames(40, pane('callers').querySelector('.grid-scroll'), 1200)")
		c.Eval("timed({tab: 'threads'})", nil)
		scroll("threads", "threads", ".grid-scroll", 40, 1200)
		add("sorting threads by a number", "", "several(6, (i) => press('threads', ['samples', 'weight'][i % 2]))")
		add("sorting threads by name", "", "several(6, () => press('threads', 'name'))")
		add("searching the threads", "", "several(8, (i) => type('threads', ['pool-7', 'thread-99', '', '4300'][i % 4]))")
		add("choosing a thread", "< 200 ms", "several(6, (i) => timed({threads: [i]}))")
		c.Eval("timed({threads: [], tab: 'timeline'})", nil)
		scroll("the lanes of threads", "timeline", ".lanes", 60, 240)
		b.heap(c, "memory of the page, "+what)
	})
}

// pageWork returns the CPU time of the page's thread, in ms.
func pageWork(c *chromium.Browser) float64 {
	var all struct {
		Metrics []struct {
			Name  string
			Value float64 // seconds
		}
	}
	c.Call("Performance.getMetrics", nil, &all)
	for _, m := range all.Metrics {
		if m.Name == "TaskDuration" {
			return 1000 * m.Value
		}
	}
	return 0
}
