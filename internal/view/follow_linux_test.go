package view

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// writer writes a recording to a file, as record does.
type writer struct {
	t      *testing.T
	p      *profile.Profile
	path   string
	stream *jfr.Stream
	done   int // samples
	ended  atomic.Bool
}

// whole presents the profile's tables as those of a recording that is being made.
type whole struct{ p *profile.Profile }

func (w whole) At(n uint32) profile.Node     { return w.p.Nodes[n] }
func (w whole) Frames() []profile.Frame      { return w.p.Frames }
func (w whole) Funcs() []profile.Func        { return w.p.Funcs }
func (w whole) Threads() []profile.Thread    { return w.p.Threads }
func (w whole) Processes() []profile.Process { return w.p.Processes }
func (w whole) Syscalls() []string           { return w.p.Syscalls }
func (w whole) Labels() [][]profile.Label    { return w.p.Labels }

func (w whole) Observations() ([]profile.Observation, int) { return w.p.Observations, 0 }

func newWriter(t *testing.T, p *profile.Profile) *writer {
	w := &writer{t: t, p: p, path: filepath.Join(t.TempDir(), "app.jfr")}
	f, err := os.Create(w.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w.stream = jfr.NewStream(f, whole{p}, func() jfr.Info { return jfr.Info{Meta: &p.Meta, Events: p.Events, Losses: p.Losses} })
	return w
}

// to writes samples until n are written.
func (w *writer) to(n int) {
	w.t.Helper()
	for ; w.done < n; w.done++ {
		if err := w.stream.Add(w.p.Samples[w.done]); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := w.stream.Flush(); err != nil {
		w.t.Fatal(err)
	}
}

// followed returns a recording that follows the file until the test or the writer ends.
func (w *writer) followed() *Recording {
	r := OpenGrowing("app.jfr")
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- Follow(ctx, r, w.path, func() bool { return !w.ended.Load() }) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			w.t.Errorf("following ended with %v", err)
		}
	})
	return r
}

// TestPageFollows looks at a recording while it is written: every number on the page is that of a
// report of what was written until then, what somebody chose stays chosen, and the end is noticed.
func TestPageFollows(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(3000, 30_000, 30)
	p.Meta.Start = time.Now()
	w := newWriter(t, p)
	r := w.followed()
	b := openView(t, served(t, r))
	b.open("#tab=methods") // before there is a sample
	w.to(5000)
	here := func(samples int) {
		t.Helper()
		of := 0
		for _, s := range p.Samples[:samples] {
			if s.Event == 0 {
				of++
			}
		}
		b.Until("candid.chosen().all.samples === " + number0(of) + " && !candid.busy()")
	}
	here(5000)
	b.same("the first", profile.Filter{})
	if text := b.Text("document.querySelector('.facts').textContent"); text[:len("recording, ")] != "recording, " {
		t.Errorf("the page says %q", text)
	}
	// Another event is chosen while the recording goes on: the numbers are of that event, including
	// those that were on their way when it was chosen.
	choose := func(event string) {
		t.Helper()
		b.Eval("(() => { const e = document.querySelector('select[aria-label=\"Event\"]'); e.value = '"+event+"'; e.dispatchEvent(new Event('change')); })()", nil)
	}
	of := func(event uint16, samples int) string {
		n := 0
		for _, s := range p.Samples[:samples] {
			if s.Event == event {
				n++
			}
		}
		return "candid.state().event === " + number0(int(event)) + " && candid.chosen().all.samples === " + number0(n) + " && !candid.busy()"
	}
	choose("1")
	b.Until(of(1, 5000))
	b.same("the other event", profile.Filter{Event: 1})
	w.to(7000)
	b.Until(of(1, 7000))
	if rep := b.same("the other event, later", profile.Filter{Event: 1}); rep.Shown.Samples == 0 {
		t.Error("the other event has no samples")
	}
	for i, event := range []string{"0", "1", "0"} { // while it grows
		w.to(8000 + 1000*i)
		choose(event)
	}
	here(10_000)
	b.same("the first event again", profile.Filter{})
	choose("1")
	b.Until(of(1, 10_000))
	b.Eval("(async () => candid.set({tab: 'callers', sandwich: true, of: (await candid.methods())[0].name}))()", nil)
	b.settled()
	w.to(11_000)
	b.Until(of(1, 11_000))
	var halves []struct{ Total float64 }
	b.Eval("candid.sandwich()", &halves)
	var want float64
	b.Eval("(async () => (await candid.methods()).find(m => m.name === candid.state().of).total)()", &want)
	if want == 0 || halves[0].Total != want || halves[1].Total != want {
		t.Errorf("while it grows the sandwich has %v, the method %v", halves, want)
	}
	choose("0")
	here(11_000)
	b.Eval("candid.set({tab: 'methods', sandwich: false, of: ''})", nil)
	b.settled()
	// A range of time, an expression and a row stay chosen.
	cut := p.Samples[4000].Time
	b.Eval("candid.set({from: 1000, to: "+number0(int(cut))+", focus: ['HashMap']})", nil)
	b.settled()
	b.Key("3")
	b.Key("ArrowDown")
	b.Key("ArrowDown")
	row := "document.querySelector('#pane-methods .grid-row.selected .name').textContent"
	chosen, focus := b.Text(row), b.Text("document.activeElement.className")
	for _, n := range []int{12_000, 20_000, 29_000} {
		w.to(n)
		here(n)
		f := profile.Filter{From: 1000, To: time.Duration(cut), Focus: questions(r)[6].filter.Focus}
		if rep := b.same("filtered", f); rep.Shown.Samples == 0 {
			t.Error("the filter chooses nothing")
		}
		if got := b.Text(row); got != chosen || b.Text("document.activeElement.className") != focus {
			t.Errorf("row %q is chosen, and %q has the focus; before it was %q and %q", got, b.Text("document.activeElement.className"), chosen, focus)
		}
	}
	// Zoom stays on its frame, though the tree has changed.
	b.Eval("candid.set({from: 0, to: 0, focus: [], tab: 'flame'})", nil)
	b.settled()
	b.Eval("(() => { let n = 1; for (let i = 2; i < candid.nodes(); i++) if (candid.name(i) === 'java.lang.Thread.run') { n = i; break; } candid.set({zoom: n}); })()", nil)
	name := b.Text("candid.name(candid.state().zoom)")
	w.to(len(p.Samples))
	here(len(p.Samples))
	if got := b.Text("candid.name(candid.state().zoom)"); got != name || name == "" {
		t.Errorf("it is zoomed to %q, before to %q", got, name)
	}
	b.same("all", profile.Filter{})
	b.Eval("candid.set({split: 'thread'})", nil)
	b.settled()
	b.same("by thread", profile.Filter{})
	b.Eval("candid.set({split: 'none', event: 1})", nil)
	b.settled()
	b.same("alloc", profile.Filter{Event: 1})

	if err := w.stream.Finish(p); err != nil {
		t.Fatal(err)
	}
	w.ended.Store(true)
	b.Until("!document.querySelector('.facts').textContent.includes('recording, ') && !candid.busy()")
	b.same("the end", profile.Filter{Event: 1})
	b.Eval("candid.set({event: 0, from: 1000, to: "+number0(int(cut))+"})", nil)
	b.settled()
	b.same("part of the end", profile.Filter{From: 1000, To: time.Duration(cut)})
	b.quiet()
}

// TestPageTellsWhyItStopped: if following ends before the recording does, the page says why and
// goes on with what it has, until it gets the rest.
func TestPageTellsWhyItStopped(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(1000, 6000, 30)
	r := OpenGrowing("app.jfr")
	r.Grow(Grown{Source: source{p, len(p.Nodes)}, Events: p.Events, Samples: p.Samples[:3000]})
	b := openView(t, served(t, r))
	b.open("#tab=methods")
	r.stop(errors.New("the disk was taken away"))
	b.Until("document.querySelector('.alert').textContent.includes('the disk was taken away') && !document.querySelector('.alert').hidden && !candid.busy()")
	b.Until("!document.querySelector('.facts').textContent.includes('recording, ') && document.querySelector('.facts').textContent.includes('not followed to its end')")
	b.Eval("candid.set({focus: ['HashMap']})", nil)
	b.settled()
	if rep := b.same("filtered", profile.Filter{Focus: questions(r)[6].filter.Focus}); rep.Shown.Samples == 0 {
		t.Error("the filter chooses nothing")
	}
	if b.Text("String(document.querySelector('.alert').hidden)") != "false" {
		t.Error("after a filter the page does not say any more that it stands still")
	}
	if err := r.Finish(p); err != nil {
		t.Fatal(err)
	}
	b.Until("document.querySelector('.alert').hidden && !candid.busy()")
	b.Eval("candid.set({focus: []})", nil)
	b.settled()
	b.same("the whole", profile.Filter{})
	b.quiet()
}

// TestFollowEnds checks that following to the end yields what a reader of the whole file has.
func TestFollowEnds(t *testing.T) {
	p := profiletest.Server(2000, 9000, 30)
	w := newWriter(t, p)
	w.to(3000)
	w.ended.Store(true)
	w.to(len(p.Samples))
	r := OpenGrowing("app.jfr")
	if err := Follow(t.Context(), r, w.path, func() bool { return false }); err != nil {
		t.Fatal(err)
	}
	if r.growing || len(r.p.Samples) != len(p.Samples) {
		t.Errorf("it has %d samples, growing: %v", len(r.p.Samples), r.growing)
	}
	if err := Follow(t.Context(), OpenGrowing("x"), filepath.Join(t.TempDir(), "none.jfr"), func() bool { return true }); !os.IsNotExist(err) {
		t.Errorf("of a file that is not there: %v", err)
	}
}

// A recording that was followed to its end reports whether that was the end of it.
func TestFollowTellsUnfinished(t *testing.T) {
	for _, finished := range []bool{true, false} {
		p := profiletest.Server(300, 3000, 5)
		p.Meta.Start = time.Now()
		w := newWriter(t, p)
		w.to(2000)
		if finished {
			if err := w.stream.Finish(p); err != nil {
				t.Fatal(err)
			}
		}
		w.ended.Store(true)
		r := OpenGrowing("app.jfr")
		if err := Follow(context.Background(), r, w.path, func() bool { return !w.ended.Load() }); err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(r.p.Meta.Notes, "\n")
		if strings.Contains(notes, "this recording was not finished: it holds the first ") == finished {
			t.Errorf("finished %t: %q", finished, notes)
		}
	}
}

// TestFollowsRepository checks that following yields what a JVM's repository has, chunk by chunk,
// and keeps it when the JVM deletes the repository.
func TestFollowsRepository(t *testing.T) {
	p := profiletest.Server(1000, 6000, 30)
	part := func(samples int) []byte {
		t.Helper()
		q := *p
		q.Samples = p.Samples[:samples]
		var b bytes.Buffer
		if err := jfr.Write(&b, &q); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	dir := filepath.Join(t.TempDir(), "2026_11_21_17_30_05_1234")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("2026_11_21_17_30_05.jfr", part(1000))
	r := OpenGrowing(dir)
	over := make(chan error, 1)
	var written atomic.Bool
	written.Store(true)
	go func() { over <- Follow(t.Context(), r, dir, written.Load) }()
	samples := func() int {
		r.lock.RLock()
		defer r.lock.RUnlock()
		return len(r.p.Samples)
	}
	until := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); samples() != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("it has %d samples, want %d", samples(), want)
			}
		}
	}
	until(1000)
	put("2026_11_21_17_30_06.jfr", part(2000))
	until(3000)
	put("2026_11_21_17_30_06.jfr", part(6000))
	until(7000)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	written.Store(false)
	select {
	case err := <-over:
		if err != nil || r.growing || r.stopped != "" || samples() != 7000 {
			t.Errorf("when the folder is gone: %v, %d samples, growing: %v, %q", err, samples(), r.growing, r.stopped)
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}
