package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// usable returns the controls that a keyboard must reach: all that are visible, except those that
// arrow keys lead to within a control. The script's functions name an element.
const usable = `(() => {
  const name = e => [e.tagName, e.id, e.getAttribute('aria-label') ?? '', e.textContent.trim().slice(0, 30), e.title.slice(0, 30)].join('|');
  const all = [...document.querySelectorAll('button, input, select, a[href], summary, [tabindex="0"]')].filter(e =>
    e.checkVisibility({visibilityProperty: true}) && !e.disabled && !e.closest('[role=menu], dialog') && !e.closest('.grid-row') &&
    !(e.getAttribute('role') === 'tab' && e.getAttribute('aria-selected') !== 'true') && !(e.type === 'radio' && !e.checked));
  return {name, all};
})()`

// TestPageTabKey goes through every tab with the Tab key: it reaches every control, and shows where
// it is.
func TestPageTabKey(t *testing.T) {
	t.Parallel()
	pages := map[string]*Recording{"one": busy(t, 1500, 10_000)}
	if fixture.Full(t) {
		before, after := twoServers(0)
		pair, err := OpenPair([2]string{"old.jfr", "new.jfr"}, before, after)
		if err != nil {
			t.Fatal(err)
		}
		pages["two"] = pair
	}
	for what, r := range pages {
		b := openView(t, served(t, r))
		for _, tab := range tabs {
			b.open("#tab=" + tab + "&focus=HashMap&of=java.lang.Thread.run&sandwich=1&from=1000000")
			b.Until("document.querySelector('main > .pane:not([hidden])').innerText !== '' || document.querySelector('main > .pane:not([hidden]) canvas')")
			b.Eval("document.activeElement.blur()", nil)
			var want []string
			b.Eval("(u => u.all.map(u.name))("+usable+")", &want)
			reached := map[string]bool{}
			for range 3 * len(want) {
				b.Key("Tab")
				var at struct {
					Name, Outline string
					Inside        bool
				}
				b.Eval(`(u => { const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
					return {name: e === document.body ? '' : u.name(e), outline: s.outlineStyle + ' ' + s.outlineWidth, inside: r.right > 0 && r.bottom > 0 && r.left < innerWidth && r.top < innerHeight}; })(`+usable+")", &at)
				if at.Name == "" {
					if len(reached) > 0 {
						break // back at the first
					}
					continue
				}
				reached[at.Name] = true
				if strings.HasPrefix(at.Outline, "none") || strings.HasSuffix(at.Outline, " 0px") {
					t.Errorf("%s, %s: nothing shows that %s has the focus (%s)", what, tab, at.Name, at.Outline)
				}
				if !at.Inside {
					t.Errorf("%s, %s: %s has the focus and is not in sight", what, tab, at.Name)
				}
			}
			for _, name := range want {
				if !reached[name] {
					t.Errorf("%s, %s: the Tab key does not reach %s", what, tab, name)
				}
			}
			if len(want) < 10 {
				t.Errorf("%s, %s: %d controls", what, tab, len(want))
			}
		}
		b.quiet()
	}
}

var tabs = []string{"flame", "tree", "methods", "callers", "timeline", "heatmap", "threads", "events", "about"}

// TestPageKeys does with keys on every tab what a pointer does there.
func TestPageKeys(t *testing.T) {
	t.Parallel()
	r := busy(t, 1500, 10_000)
	b := openView(t, served(t, r))
	chosen := func(what, condition string) {
		t.Helper()
		b.Until("(s => " + condition + ")(candid.state()) && !candid.busy()")
		_ = what
	}
	clear := func() {
		t.Helper()
		b.Eval("candid.set({threads: [], states: [], focus: [], from: 0, to: 0, zoom: 0, query: ''})", nil)
		b.settled()
	}
	b.open("")
	for i, tab := range tabs {
		b.Key(fmt.Sprint(i + 1))
		chosen(tab, "s.tab === '"+tab+"'")
		b.Until("document.querySelector('#pane-" + tab + "').contains(document.activeElement)")
		switch tab {
		case "flame":
			b.Key("ArrowUp")
			b.Key("ArrowUp")
			b.Key("Enter")
			chosen(tab, "s.zoom > 0")
			b.Key("Backspace")
			b.Key("Backspace")
			b.Key("Backspace")
			chosen(tab, "s.zoom === 0")
			b.Key("i")
			chosen(tab, "!s.flame")
			b.Key("i")
			chosen(tab, "s.flame")
		case "tree", "methods", "callers":
			b.Until("document.querySelectorAll('#pane-" + tab + " .grid-row').length > 2")
			b.Key("ArrowDown")
			if tab != "methods" {
				row := "document.querySelector('#pane-" + tab + " .grid-row.selected')"
				b.Until("!!" + row)
				open := b.Text(row + ".getAttribute('aria-expanded')")
				b.Key(map[string]string{"true": "ArrowLeft", "false": "ArrowRight"}[open])
				b.Until(row + ".getAttribute('aria-expanded') !== '" + open + "'")
			}
			b.Key("m")
			b.Until("document.querySelector('.menu[aria-label=\"With this method\"]').contains(document.activeElement)")
			b.Key("Escape")
			b.Until("document.querySelector('#pane-" + tab + "').contains(document.activeElement)")
			b.Key("Enter")
			chosen(tab, "s.tab === 'callers' && s.of !== ''")
			b.Eval("candid.set({of: ''})", nil)
		case "timeline":
			b.Until("candid.timeline().length > 3")
			b.Key("ArrowDown")
			b.Key("ArrowDown")
			b.Key(" ")
			chosen(tab, "s.threads.length === 1")
			b.Key("ArrowDown")
			b.Key(" ")
			chosen(tab, "s.threads.length === 2")
			b.Key("Enter")
			chosen(tab, "s.threads.length === 1")
			if text := b.Text("document.querySelector('#pane-timeline .pane-title').textContent"); !strings.Contains(text, "%") {
				t.Errorf("the timeline says %q of the thread that is chosen", text)
			}
			b.Key("m")
			b.Until("document.querySelector('.menu[aria-label=\"With this method\"]').contains(document.activeElement)")
			b.Key("Escape")
			b.Key("ArrowRight")
			chosen(tab, "s.to > 0")
			b.Key("Escape")
			chosen(tab, "s.to === 0")
			clear()
		case "heatmap":
			b.Until("candid.heatmap().columns > 0")
			var cell, begin float64
			b.Eval("candid.heatmap().cell", &cell)
			b.Key("ArrowDown") // to the first cell
			b.Key("ArrowDown")
			b.Key("ArrowRight")
			b.Key("Enter")
			chosen(tab, fmt.Sprintf("s.from === %v && s.to === %v", 51*cell, 52*cell))
			b.Eval("candid.state().from", &begin)
			b.Eval("window.shift = new KeyboardEvent('keydown', {key: 'ArrowDown', shiftKey: true, bubbles: true}); document.activeElement.dispatchEvent(window.shift)", nil)
			chosen(tab, fmt.Sprintf("s.from === %v && s.to === %v", 51*cell, 53*cell))
			b.Key("Escape")
			chosen(tab, "s.to === 0")
		case "threads":
			b.Until("document.querySelectorAll('#pane-threads .grid-row').length > 3")
			b.Key("ArrowDown")
			b.Key("ArrowDown")
			b.Key(" ")
			chosen(tab, "s.threads.length === 1")
			b.Key("ArrowDown")
			b.Key(" ")
			chosen(tab, "s.threads.length === 2")
			b.Key("Enter")
			chosen(tab, "s.threads.length === 1")
			b.Key("Enter")
			chosen(tab, "s.threads.length === 0")
		case "events":
			b.Key("ArrowDown") // the next of the radio buttons
			chosen(tab, "s.event === 1")
			b.Until("document.activeElement.type === 'radio'")
			b.Key("Tab")
			b.Until("document.activeElement.type === 'checkbox'")
			b.Key(" ")
			chosen(tab, "s.states.length === 1")
			b.Until("document.activeElement.type === 'checkbox' && document.activeElement.checked")
			b.Key(" ")
			chosen(tab, "s.states.length === 0")
			b.Eval("candid.set({event: 0})", nil)
			b.settled()
		}
	}
	// A filter is removed by its chip, and the keyboard focus goes on from there.
	b.open("#tab=methods&focus=HashMap&ignore=Order&from=1000000")
	for n := 3; n > 0; n-- {
		b.Eval("document.querySelector('.chip button').focus()", nil)
		b.Key("Enter")
		b.Until(fmt.Sprintf("document.querySelectorAll('.chip').length === %d && !candid.busy()", n-1))
		b.Until("document.activeElement !== document.body")
	}
	// The menu of what another range of time is compared with: the page is rebuilt.
	b.open("#tab=heatmap&from=1000000&to=9000000000")
	b.Eval("[...document.querySelectorAll('.chips button')].find(e => e.textContent.startsWith('Compare')).focus()", nil)
	b.Key("Enter")
	b.Until("document.querySelectorAll('#pane-heatmap .segmented button').length === 4 && !candid.busy()")
	b.Until("document.activeElement !== document.body")
	b.Key("?")
	b.Until("document.querySelector('dialog[open]')")
	text := b.Text("document.querySelector('dialog[open]').textContent")
	for _, key := range []string{"1 … 9", "/", "Tab", "Enter", "Space", "Shift", "Backspace", "Esc", "+", "<", "n", "i", "t", "d", "m"} {
		if !strings.Contains(text, key) {
			t.Errorf("the keys lack %s", key)
		}
	}
	b.quiet()
}

// TestPageTwice looks at every tab at 200 %: every control can be scrolled fully into view,
// overlaps no other, and its text is not cut off.
func TestPageTwice(t *testing.T) {
	t.Parallel()
	one := busy(t, 1500, 10_000)
	pages := map[string]*Recording{"one": one}
	if fixture.Full(t) {
		before, after := twoServers(0)
		pair, err := OpenPair([2]string{"old.jfr", "new.jfr"}, before, after)
		if err != nil {
			t.Fatal(err)
		}
		pages["two"] = pair
	}
	for what, r := range pages {
		b := openView(t, served(t, r))
		b.Size(640, 400, 2) // 1280 by 800 pixels
		var views []string
		for _, tab := range tabs {
			views = append(views, "#tab="+tab)
		}
		views = append(views, "#tab=callers&sandwich=1&of=java.lang.Thread.run", "#tab=timeline&focus=HashMap&from=1000000&search=Order")
		if what == "one" {
			end := one.end / 2
			views = append(views, fmt.Sprintf("#tab=timeline&times=difference&base=0-%d&from=%d", end, end), fmt.Sprintf("#tab=heatmap&times=difference&base=0-%d&from=%d", end, end))
		}
		for _, hash := range views {
			b.open(hash)
			b.Eval("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(0))))", nil)
			var wrong []string
			b.Eval(`(u => u.all.flatMap(e => {
				e.scrollIntoView({block: 'nearest', inline: 'nearest'});
				const r = e.getBoundingClientRect(), out = [];
				if (e.tagName === 'CANVAS' || e.matches('.pane, .grid-scroll, .strip')) return [];
				if (r.left < -1 || r.right > innerWidth + 1) out.push('is cut off at ' + Math.round(r.left) + ' to ' + Math.round(r.right));
				if (r.top < -1 || r.bottom > innerHeight + 1) out.push('cannot be scrolled to: ' + Math.round(r.top) + ' to ' + Math.round(r.bottom));
				for (const x of [0.2, 0.5, 0.8]) {
					const at = document.elementFromPoint(r.left + x * r.width, r.top + r.height / 2);
					if (!at || !e.contains(at)) { out.push('lies under ' + (at ? u.name(at) : 'nothing')); break; }
				}
				if (e.tagName === 'BUTTON' && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).textOverflow !== 'ellipsis') out.push('is wider inside, ' + e.scrollWidth + ', than out, ' + e.clientWidth);
				return out.map(o => u.name(e) + ' ' + o);
			}))(`+usable+")", &wrong)
			for _, w := range wrong {
				t.Errorf("%s, %s at 200 %%: %s", what, hash, w)
			}
		}
		b.quiet()
	}
}
