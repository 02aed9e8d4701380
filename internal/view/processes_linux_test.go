package view

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestPageProcesses chooses one of two processes: its threads are those that are listed,
// and the numbers are those of a report of them.
func TestPageProcesses(t *testing.T) {
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
