package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/chromium"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// speedscope is the version of its published package that candid is compared with.
const speedscope = "1.25.0"

// view measures the page in headless Chromium, which draws without a GPU: how long it takes to
// load, and to respond to what people do. speedscope gets the same samples.
func (b *bench) view() {
	sizes := []struct {
		name           string
		samples, nodes int
	}{{"200,000 samples", 200_000, 100_000}, {"1 million samples", 1_000_000, 300_000}, {"5 million samples", 5_000_000, 1_000_000}}
	if b.quick {
		sizes = sizes[:1]
	}
	for _, s := range sizes {
		p := profiletest.Server(s.nodes, s.samples, 60)
		what := fmt.Sprintf("%s, %.1f million nodes", s.name, float64(len(p.Nodes))/1e6)
		file := filepath.Join(b.work, "view.jfr")
		if err := writeProfile(file, "jfr", p); err != nil {
			b.add(row{Section: "view", What: what, Failed: err.Error()})
			continue
		}
		b.ours(what, file)
		b.theirs(what, p)
	}
	b.tables()
}

func writeProfile(file, kind string, p *profile.Profile) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(format.Write(w, kind, p, format.Options{}), w.Flush(), f.Close())
}

// browsing implements for a benchmark what a browser needs; it fails with a panic.
type browsing struct {
	dir   string
	after []func()
}

type failure string

func (x *browsing) Helper()                   {}
func (x *browsing) TempDir() string           { return x.dir }
func (x *browsing) Cleanup(f func())          { x.after = append(x.after, f) }
func (x *browsing) Fatal(args ...any)         { panic(failure(fmt.Sprint(args...))) }
func (x *browsing) Fatalf(f string, a ...any) { panic(failure(fmt.Sprintf(f, a...))) }
func (x *browsing) Skip(args ...any)          { panic(failure(fmt.Sprint(args...))) }

// browse does something with a browser and returns why that was not possible.
func (b *bench) browse(do func(c *chromium.Browser)) (err error) {
	dir, err := os.MkdirTemp(b.work, "browser-")
	if err != nil {
		return err
	}
	x := &browsing{dir: dir}
	defer func() {
		for _, f := range slices.Backward(x.after) {
			f()
		}
		if f, failed := recover().(failure); failed {
			err = errors.New(string(f[:min(len(f), 200)]))
		}
	}()
	do(chromium.Open(x, 1400, 900))
	return nil
}

// measures are the scripts that measure the page: each returns the milliseconds until the change is
// drawn.
const measures = `
window.settle = async () => {
  do await new Promise(r => setTimeout(r, 0)); while (candid.busy());
  await new Promise(r => requestAnimationFrame(() => setTimeout(r, 0)));
};
window.timed = async (change) => {
  const start = performance.now();
  candid.set(change);
  await settle();
  return performance.now() - start;
};
window.drawn = (change) => {
  const start = performance.now();
  candid.set(change);
  candid.paint(1);
  return performance.now() - start;
};
// unfolded opens the first row of a table that is closed; if none is in sight, one is closed before.
window.unfolded = async (tab) => {
  const closed = () => document.querySelector('#pane-' + tab + ' .twist:not(.open):not(.none)');
  if (!closed()) {
    document.querySelector('#pane-' + tab + ' .twist.open').click();
    await settle();
  }
  const start = performance.now();
  closed().click();
  await settle();
  return performance.now() - start;
};
window.several = async (n, f) => { const out = []; for (let i = 0; i < n; i++) out.push(await f(i)); return out; };
`

// page shows a file in the browser and measures there; show loads the page and returns how long
// that took, and how long candid took until it served.
func (b *bench) page(what, file string, do func(c *chromium.Browser, show func() (loaded, served time.Duration))) {
	failed := func(err error) { b.add(row{Section: "view", What: "candid view of " + what, Failed: err.Error()}) }
	begun := time.Now()
	cmd := exec.Command(b.candid, "view", file)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		failed(err)
		return
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		failed(err)
		return
	}
	served := time.Since(begun)
	err = b.browse(func(c *chromium.Browser) {
		do(c, func() (time.Duration, time.Duration) {
			start := time.Now()
			c.Show(strings.TrimSpace(url), "document.documentElement?.dataset.ready && !candid.busy()")
			c.Eval(measures, nil)
			return served + time.Since(start), served
		})
	})
	if err != nil {
		failed(err)
	}
}

// timed adds a row for a script that returns a list of milliseconds.
func (b *bench) timed(c *chromium.Browser, name, bar, script string) {
	var ms []float64
	c.Eval(script, &ms)
	slices.Sort(ms)
	b.add(row{Section: "view", What: name, Value: ms[len(ms)/2], Min: ms[0], Max: ms[len(ms)-1], Runs: len(ms), Unit: "ms", Bar: bar})
}

func (b *bench) heap(c *chromium.Browser, name string) {
	var heap float64
	c.Eval("performance.memory.usedJSHeapSize / 2 ** 20", &heap)
	b.add(row{Section: "view", What: name, Value: heap, Unit: "MiB"})
}

func (b *bench) ours(what, file string) {
	b.page(what, file, func(c *chromium.Browser, show func() (time.Duration, time.Duration)) {
		add := func(name, bar, script string) { b.timed(c, name+", "+what, bar, script) }
		loaded, served := show()
		b.add(row{Section: "view", What: "load, " + what, Value: loaded.Seconds(), Unit: "s", Note: fmt.Sprintf("%.2f s of it until candid serves", served.Seconds())})
		end := "const end = candid.end();"
		brush := "(async () => { " + end + " return several(15, (i) => timed({from: Math.floor(end * (0.05 + 0.02 * i)), to: Math.floor(end * (0.6 + 0.02 * i))})); })()"
		add("brush on the flame graph", "< 200 ms", brush)
		c.Eval("timed({from: 0, to: 0})", nil)
		add("flame graph, a frame", "≤ 30 ms", "(async () => candid.paint(30).slice(5))()")
		add("search in the flame graph", "≤ 50 ms", "several(12, (i) => drawn({query: ['HashMap', 'Order.*get', 'a', 'java.util'][i % 4]}))")
		c.Eval("timed({query: '', tab: 'methods'})", nil)
		add("brush on the method list", "< 200 ms", brush)
		c.Eval("timed({from: 0, to: 0})", nil)
		c.Eval("timed({tab: 'tree'})", nil)
		add("brush on the call tree", "< 200 ms", brush)
		c.Eval("timed({from: 0, to: 0})", nil)
		add("opening a row of the call tree", "< 100 ms", "several(9, () => unfolded('tree'))")
		c.Eval("timed({split: 'thread'})", nil)
		add("opening a thread in the call tree", "", "several(5, () => unfolded('tree'))")
		c.Eval("timed({split: 'none'})", nil)
		c.Eval("timed({tab: 'callers', of: ''})", nil)
		add("brush on the callers of all methods", "< 200 ms", brush)
		c.Eval("timed({from: 0, to: 0})", nil)
		add("opening a row of callers", "< 100 ms", "several(9, () => unfolded('callers'))")
		add("invert: callers of all methods", "", "several(5, async () => { await timed({tab: 'flame'}); candid.set({from: 1, to: 0}); await settle(); candid.set({from: 0}); await settle(); return timed({tab: 'callers', of: ''}); })")
		add("sandwich of a method", "", "(async () => { const names = (await candid.methods()).map(m => m.name); return several(5, async (i) => timed({tab: 'callers', sandwich: true, of: names[i]})); })()")
		b.heap(c, "memory of the page, "+what)
	})
}

// fetchSpeedscope returns the path of the published package, which it fetches once.
func fetchSpeedscope() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "candid-bench", "speedscope-"+speedscope)
	release := filepath.Join(dir, "node_modules", "speedscope", "dist", "release")
	if _, err := os.Stat(filepath.Join(release, "index.html")); err == nil {
		return release, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	out, err := exec.Command("npm", "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "speedscope@"+speedscope).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("npm install speedscope: %w: %s", err, out[:min(len(out), 200)])
	}
	return release, nil
}

// theirs measures speedscope: its file has the same samples, in the same order.
func (b *bench) theirs(what string, p *profile.Profile) {
	name := "speedscope " + speedscope + ": load, " + what
	fail := func(err error) { b.add(row{Section: "view", What: name, Failed: err.Error()}) }
	release, err := fetchSpeedscope()
	if err != nil {
		fail(err)
		return
	}
	file := filepath.Join(b.work, "view.speedscope.json")
	if err := writeProfile(file, "speedscope", p); err != nil {
		fail(err)
		return
	}
	st, err := os.Stat(file)
	if err != nil {
		fail(err)
		return
	}
	size := fmt.Sprintf("a file of %.0f MB", float64(st.Size())/1e6)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fail(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(release)))
	mux.HandleFunc("/view.speedscope.json", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	base := "http://" + l.Addr().String() + "/"
	before := chromium.Patience
	chromium.Patience = 3 * time.Minute
	defer func() { chromium.Patience = before }()
	err = b.browse(func(c *chromium.Browser) {
		start := time.Now()
		c.Show(base+"#profileURL="+base+"view.speedscope.json", "document.body?.innerText.includes('Sandwich') || document.body?.innerText.includes('Something went wrong')")
		if strings.Contains(c.Text("document.body.innerText"), "Something went wrong") {
			panic(failure("it says that something went wrong with " + size))
		}
		b.add(row{Section: "view", What: name, Value: time.Since(start).Seconds(), Unit: "s", Note: size})
		press := func(key, until string) float64 {
			start := time.Now()
			c.Key(key)
			c.Until(until)
			return float64(time.Since(start).Microseconds()) / 1000
		}
		b.add(row{Section: "view", What: "speedscope: table of methods, " + what, Value: press("3", "document.body.innerText.includes('Symbol Name\\n')"), Unit: "ms"})
		b.heap(c, "speedscope: memory of the page, "+what)
	})
	if err != nil {
		fail(fmt.Errorf("%w (%s)", err, size))
	}
}
