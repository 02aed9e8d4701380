package view

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestPageProcesses chooses one of two processes: its threads are those that are listed, and the
// numbers are those of a report of them.
func TestPageProcesses(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(1500, 10_000, 40)
	p.Processes = append(p.Processes, profile.Process{PID: 777, Command: "/usr/bin/worker --all"})
	mine := 0
	for i := range p.Threads {
		if i%3 == 1 {
			p.Threads[i].PID, p.Threads[i].Name = 777, fmt.Sprintf("worker-%d", i)
			mine++
		}
	}
	r, err := Open("two.jfr", p)
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r))
	b.open("#tab=threads")
	b.Until(fmt.Sprintf("document.querySelectorAll('#pane-threads .grid-row').length >= %d", min(len(p.Threads), 15)))
	const choose = "(e => { e.value = '%s'; e.dispatchEvent(new Event('change')); })(document.querySelector('#pane-threads select'))"
	b.Eval(fmt.Sprintf(choose, "777"), nil)
	b.settled()
	b.same("a process", profile.Filter{Thread: regexp.MustCompile("^worker-")})
	b.Until(fmt.Sprintf("(l => l.length === %d && l.every(e => e.textContent.includes('worker-') && e.querySelector('input').checked))([...document.querySelectorAll('#pane-threads .grid-row')])", mine))
	if got := b.chips(); len(got) != 1 || got[0] != "worker --all · 777" {
		t.Errorf("the chips are %q", got)
	}
	b.Eval(fmt.Sprintf(choose, ""), nil)
	b.settled()
	b.same("all again", profile.Filter{})
	b.Until("!document.querySelector('#pane-threads input[type=checkbox]:checked') && [...document.querySelectorAll('#pane-threads .grid-row')].some(e => !e.textContent.includes('worker-'))")
	b.quiet()
}

// TestPageKinds shows the threads of a kind with one click, and keeps to that kind when threads
// start.
func TestPageKinds(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(1500, 10_000, 40)
	kinds := []string{"java", "java", "gc", "compiler", "java"}
	for i := range p.Threads {
		p.Threads[i].Kind = kinds[i%len(kinds)]
	}
	r := OpenGrowing("app.jfr")
	q := *p
	q.Threads = p.Threads[:20]
	samples := func(threads int) (out []profile.Sample) {
		for _, s := range p.Samples {
			if int(s.Thread) < threads {
				out = append(out, s)
			}
		}
		return out
	}
	first := samples(20)
	r.Grow(Grown{Source: source{&q, len(p.Nodes)}, Events: p.Events, Samples: first})
	b := openView(t, served(t, r))
	b.open("#tab=methods")
	press := func(label string) {
		t.Helper()
		b.Eval("[...document.querySelectorAll('[aria-label=\"Kinds of threads\"] button')].find(e => e.textContent === "+quoted(label)+").click()", nil)
		b.settled()
	}
	pressed := func(want string) {
		t.Helper()
		if got := b.Text("[...document.querySelectorAll('[aria-label=\"Kinds of threads\"] [aria-pressed=true]')].map(e => e.textContent).join()"); got != want {
			t.Errorf("%q is pressed, want %q", got, want)
		}
	}
	pressed("All threads")
	press("GC")
	if rep := b.same("gc", profile.Filter{ThreadKinds: []string{"gc"}}); rep.Shown.Samples == 0 || rep.Shown == rep.All {
		t.Errorf("the kind chooses %v of %v", rep.Shown, rep.All)
	}
	press("Java")
	pressed("Java")
	b.same("java", profile.Filter{ThreadKinds: []string{"java"}})
	if got := b.chips(); len(got) != 1 || got[0] != "Java" {
		t.Errorf("the chips are %q", got)
	}
	// Other threads start, some of them of that kind.
	var rest []profile.Sample
	for _, s := range p.Samples {
		if s.Thread >= 20 {
			rest = append(rest, s)
		}
	}
	if len(first) == 0 || len(rest) == 0 {
		t.Fatal("there is nothing to begin")
	}
	r.Grow(Grown{Source: source{p, len(p.Nodes)}, Events: p.Events, Samples: rest})
	cpu := 0
	for _, s := range p.Samples {
		if s.Event == 0 {
			cpu++
		}
	}
	b.Until(fmt.Sprintf("candid.chosen().all.samples === %d && !candid.busy()", cpu))
	pressed("Java")
	b.same("java, later", profile.Filter{ThreadKinds: []string{"java"}})
	b.Eval("document.querySelector('.chip button').click()", nil)
	b.settled()
	pressed("All threads")
	b.same("all", profile.Filter{})
	// The kind of one of the program's threads is not known: the choice Java keeps that thread.
	q = *p
	q.Threads = slices.Clone(p.Threads)
	q.Threads[0].Kind = ""
	generation := b.Text("document.documentElement.dataset.generation")
	r.Grow(Grown{Source: source{&q, len(p.Nodes)}, Events: p.Events})
	b.Until(fmt.Sprintf("document.documentElement.dataset.generation !== %q && !candid.busy()", generation))
	press("Java")
	pressed("Java")
	if chosen := b.Text("candid.state().threads.includes(0) + ' ' + candid.state().threads.length"); !strings.HasPrefix(chosen, "true ") {
		t.Errorf("of a thread whose kind is not known Java makes %q", chosen)
	}
	b.settled()
	b.sameAs(&q, "java, with a thread of unknown kind", profile.Filter{ThreadKinds: []string{"java"}})
	press("GC")
	b.sameAs(&q, "gc, without that thread", profile.Filter{ThreadKinds: []string{"gc"}})
	press("All threads")
	// A single thread is not a kind.
	b.Eval("candid.set({threads: [1]})", nil)
	b.settled()
	pressed("")
	b.quiet()
}
