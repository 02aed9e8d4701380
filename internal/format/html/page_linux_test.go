package html

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/chromium"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

func writePage(t testing.TB, p *profile.Profile) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, page(t, p), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// flamePage is a browser that shows a flame graph page.
type flamePage struct {
	*chromium.Browser
	t testing.TB
}

func openPage(t testing.TB, width, height int) *flamePage {
	return &flamePage{chromium.Open(t, width, height), t}
}

// open shows a page and waits until it is drawn.
func (b *flamePage) open(file, hash string) {
	b.t.Helper()
	b.Show("file://"+file+hash, "document.documentElement?.dataset.ready")
	if got := b.Text("document.documentElement.dataset.ready"); got != "1" {
		b.t.Fatalf("the page is not shown (%q): %s; %s", got, b.Text("document.body.innerText"), b.Errors)
	}
}

// quiet fails the test if the page sent a request or logged an error.
func (b *flamePage) quiet(file string) {
	b.t.Helper()
	for _, r := range b.Requests {
		if !strings.HasPrefix(r, "file://"+file) && r != "about:blank" {
			b.t.Errorf("the page asked for %s", r)
		}
	}
	for _, e := range b.Errors {
		b.t.Errorf("the page complained: %s", e)
	}
}

type sums struct{ Self, Total, Samples float64 }

// TestPageNumbers compares what the page adds up with the profile, sample by sample: with the
// frames by which threads start, and without them, as the page opens; with one frame for each
// function, as the page opens, and with one for each kind of code that it ran in.
func TestPageNumbers(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(4000, 20000, 40)
	b := openPage(t, 1280, 800)
	file := writePage(t, p)
	b.numbers(file, p, true, true)
	b.numbers(file, p, true, false)
	b.numbers(file, p, false, false)
	// One key press switches between the two; the zoom stays.
	var zoomed struct {
		Node int
		Name string
	}
	b.open(file, "")
	b.Eval("(() => { let best = 1; for (let i = 1; i < candid.nodes(); i++) if (candid.frame(i).self > candid.frame(best).self) best = i; candid.show(best); return {node: best, name: candid.frame(best).name}; })()", &zoomed)
	b.open(file, fmt.Sprintf("#zoom=%d", zoomed.Node))
	same := func(shown bool) {
		t.Helper()
		var got struct {
			Shown bool
			Name  string
		}
		b.Eval("({shown: candid.state().starts, name: candid.frame(candid.state().zoom).name})", &got)
		if got.Shown != shown || got.Name != zoomed.Name {
			t.Errorf("thread starts shown: %v, zoomed to %s, before to %s", got.Shown, got.Name, zoomed.Name)
		}
	}
	same(false)
	b.Key("u")
	same(true)
	if h := b.Text("location.hash"); !strings.Contains(h, "starts=shown") {
		t.Errorf("the address is %s", h)
	}
	b.Eval("[...document.querySelectorAll('.tools button')].find(e => e.textContent === 'Thread starts shown').click()", nil)
	same(false)
	if h, want := b.Text("location.hash"), fmt.Sprintf("#zoom=%d", zoomed.Node); h != want {
		t.Errorf("the address is %s, was %s", h, want)
	}
	// One key press switches from one frame for a function to several: the zoom is on one of these.
	var most struct {
		Node, Kinds int
		Name        string
	}
	b.open(file, "")
	b.Eval("(() => { let best = 1; for (let i = 1; i < candid.nodes(); i++) if (candid.frame(i).kinds.length > candid.frame(best).kinds.length) best = i; return {node: best, name: candid.frame(best).name, kinds: candid.frame(best).kinds.length}; })()", &most)
	if most.Kinds < 2 {
		t.Fatalf("no function ran in several kinds of code: nothing is tested")
	}
	b.open(file, fmt.Sprintf("#zoom=%d", most.Node))
	apart := func(want bool) {
		t.Helper()
		var got struct {
			Tiers bool
			Name  string
			Kinds int
		}
		b.Eval("({tiers: candid.state().tiers, name: candid.frame(candid.state().zoom).name, kinds: candid.frame(candid.state().zoom).kinds.length})", &got)
		if got.Tiers != want || got.Name != most.Name || (got.Kinds == 1) != want {
			t.Errorf("kinds apart: %v, zoomed to %s of %d kinds, before to %s of %d", got.Tiers, got.Name, got.Kinds, most.Name, most.Kinds)
		}
	}
	apart(false)
	b.Eval("candid.select(candid.state().zoom)", nil)
	if text := b.Text("document.querySelector('.detail .kind').textContent"); strings.Count(text, " · ") != most.Kinds-1 || !strings.Contains(text, " %") {
		t.Errorf("of a frame of %d kinds of code the page says %q", most.Kinds, text)
	}
	b.Key("k")
	apart(true)
	if h := b.Text("location.hash"); !strings.Contains(h, "tiers=apart") {
		t.Errorf("the address is %s", h)
	}
	b.Eval("document.querySelector('.legend .tiers').click()", nil)
	apart(false)
	b.quiet(file)
}

// stackOf returns a stack of a profile, outermost frame first; shown includes how its thread
// started.
func stackOf(p *profile.Profile, s *profile.Sample, shown bool) []profile.Frame {
	var out []profile.Frame
	for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
		out = append(out, p.Frames[p.Nodes[n].Frame])
	}
	slices.Reverse(out)
	for i, f := range out {
		fn := &p.Funcs[f.Func]
		if yes, _ := attribution.Starts(f.Kind, fn.Name, fn.Module); shown || s.End != walk.EndComplete {
			break // what is outside of a broken stack is not known
		} else if yes {
			continue
		}
		if attribution.Begins(f.Kind, fn.Module) {
			return out[i:]
		}
		break
	}
	return out
}

func (b *flamePage) numbers(file string, p *profile.Profile, shown, apart bool) {
	t := b.t
	t.Helper()
	suffix := ""
	if shown {
		suffix = "&starts=shown"
	}
	if apart {
		suffix += "&tiers=apart"
	}
	b.open(file, "#"+strings.TrimPrefix(suffix, "&"))

	var weight [2]float64
	var count [2]float64
	thread := make([]float64, len(p.Threads))
	type frame struct{ total, samples float64 }
	byPath := map[string]frame{} // by the names on the path, event 0
	selfOf := map[string]float64{}
	kindsOf := map[string]map[string]float64{}
	kind := func(name, kind string) string {
		if apart {
			return name + "\x00" + kind
		}
		return name
	}
	for _, s := range p.Samples {
		weight[s.Event] += float64(s.Weight)
		count[s.Event]++
		if s.Event != 0 {
			continue
		}
		thread[s.Thread] += float64(s.Weight)
		var names, kinds []string
		if s.End != 0 {
			names, kinds = append(names, kind(flame.EndName(s.End), "no stack")), append(kinds, "no stack")
		}
		for _, f := range stackOf(p, &s, shown) {
			names = append(names, kind(flame.Visible(p.Funcs[f.Func].Name), flame.KindNames[f.Kind]))
			kinds = append(kinds, flame.KindNames[f.Kind])
		}
		path := ""
		for i, n := range names {
			path += "\x01" + n
			if kindsOf[path] == nil {
				kindsOf[path] = map[string]float64{}
			}
			kindsOf[path][kinds[i]] += float64(s.Weight)
			f := byPath[path]
			byPath[path] = frame{f.total + float64(s.Weight), f.samples + 1}
		}
		selfOf[path] += float64(s.Weight)
	}

	var got sums
	b.Eval("candid.sums()", &got)
	if got.Total != weight[0] || got.Self != weight[0] || got.Samples != count[0] {
		t.Errorf("the page adds up to %+v, the profile to %v in %v samples", got, weight[0], count[0])
	}

	// Every frame of the page, by its path.
	var frames []struct {
		Name, Kind           string
		Depth                int
		Self, Total, Samples float64
		Kinds                []struct {
			Name  string
			Total float64
		}
	}
	b.Eval("Array.from({length: candid.nodes()}, (_, i) => candid.frame(i)).slice(1)", &frames)
	seen := map[string]bool{}
	var way []string
	wrong := 0
	for _, f := range frames {
		way = append(way[:f.Depth-1], "\x01"+kind(f.Name, f.Kind))
		path := strings.Join(way, "")
		want := byPath[path]
		if seen[path] {
			continue // two functions whose names look the same; the sums above cover them
		}
		seen[path] = true
		if want != (frame{f.Total, f.Samples}) || selfOf[path] != f.Self {
			if wrong++; wrong < 5 {
				t.Errorf("%q: page has total %v samples %v self %v, the profile %v and %v", path, f.Total, f.Samples, f.Self, want, selfOf[path])
			}
		}
	}
	for _, f := range frames {
		way = append(way[:f.Depth-1], "\x01"+kind(f.Name, f.Kind))
		want := kindsOf[strings.Join(way, "")]
		most := 0.0
		for _, n := range want {
			most = max(most, n)
		}
		right := len(want) == len(f.Kinds) && want[f.Kind] == most
		for _, k := range f.Kinds {
			right = right && want[k.Name] == k.Total
		}
		if !right && len(f.Kinds) > 0 {
			if wrong++; wrong < 5 {
				t.Errorf("%q is shown as %s, of %v, the profile has %v", way, f.Kind, f.Kinds, want)
			}
		}
	}
	for path := range byPath {
		if !seen[path] {
			t.Errorf("not on the page: %q", path)
			break
		}
	}

	// Search: a stack counts once, however often the name is in it.
	search := 0.0
	for _, s := range p.Samples {
		for n := s.Node; s.Event == 0 && n != profile.RootNode; n = p.Nodes[n].Parent {
			if strings.Contains(p.Funcs[p.Frames[p.Nodes[n].Frame].Func].Name, "HashMap") {
				search += float64(s.Weight)
				break
			}
		}
	}
	b.open(file, "#search=HashMap"+suffix)
	var matched struct{ Nodes, Total float64 }
	b.Eval("candid.matched()", &matched)
	if matched.Total != search || search == 0 {
		t.Errorf("HashMap matches %v, want %v", matched.Total, search)
	}
	if found, want := b.Text("document.getElementById('found').textContent"), fmt.Sprintf("%.1f %%", 100*search/weight[0]); !strings.Contains(found, want) {
		t.Errorf("the page says %q, want %s", found, want)
	}

	// Threads: split by thread they have the same sum; without two of them, the rest.
	b.open(file, "#split=thread"+suffix)
	b.Eval("candid.sums()", &got)
	if got.Total != weight[0] || got.Self != weight[0] {
		t.Errorf("by thread the page adds up to %+v, the profile to %v", got, weight[0])
	}
	for i, want := range thread[:3] {
		name := fmt.Sprintf("%s · %d", flame.Visible(p.Threads[i].Name), p.Threads[i].TID)
		raw, _ := json.Marshal([]string{name})
		var total float64
		b.Eval(fmt.Sprintf("candid.frame(candid.node(%s)).total", raw), &total)
		if total != want {
			t.Errorf("thread %q has %v, want %v", name, total, want)
		}
	}
	b.open(file, "#without=0.2&event=0"+suffix)
	b.Eval("candid.sums()", &got)
	if want := weight[0] - thread[0] - thread[2]; got.Total != want {
		t.Errorf("without threads 0 and 2 the page adds up to %v, want %v", got.Total, want)
	}
	b.open(file, "#event=1"+suffix)
	b.Eval("candid.sums()", &got)
	if got.Total != weight[1] || got.Samples != count[1] {
		t.Errorf("event 1 adds up to %+v, want %v in %v samples", got, weight[1], count[1])
	}
	b.quiet(file)
}

func TestPageHostileNames(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(2000, 8000, 30)
	p.Meta.Command, p.Meta.Host = profiletest.Hostile[0], profiletest.Hostile[1]
	p.Processes[0].Command = profiletest.Hostile[2]
	b := openPage(t, 1280, 800)
	file := writePage(t, p)
	b.open(file, "#split=thread&starts=shown")
	b.Key("T") // the list of threads, one of which has a hostile name
	b.Key("Escape")
	for _, name := range profiletest.Hostile {
		raw, _ := json.Marshal(flame.Visible(name))
		var at int
		b.Eval(fmt.Sprintf("Array.from({length: candid.nodes()}, (_, i) => i).find(i => candid.frame(i).name === %s) ?? -1", raw), &at)
		if at < 0 {
			t.Errorf("no frame %q", name)
			continue
		}
		b.Eval(fmt.Sprintf("candid.show(%d); candid.select(%d)", at, at), nil)
		if got := b.Text("document.querySelector('.detail .name').innerText"); !strings.Contains(got, flame.Visible(name)) {
			t.Errorf("the detail line shows %q for %q", got, name)
		}
	}
	if got := b.Text("document.querySelector('h1').textContent"); got != profiletest.Hostile[0] {
		t.Errorf("the title shows %q", got)
	}
	if got := b.Text("document.title"); strings.Contains(got, "owned") && !strings.Contains(got, "<script>") {
		t.Errorf("a name ran: the title is %q", got)
	}
	var images int
	b.Eval("document.querySelectorAll('img, script[src], iframe, object, link:not([rel=icon])').length", &images)
	if images != 0 {
		t.Errorf("a name became %d elements", images)
	}
	b.quiet(file)
}

func TestPageKeyboard(t *testing.T) {
	t.Parallel()
	b := openPage(t, 1280, 800)
	b.Dark(false)
	file := writePage(t, profiletest.Server(2000, 8000, 30))
	b.open(file, "")
	type state struct {
		Zoom  int
		Flame bool
		Split string
		Query string
	}
	get := func() (s state) {
		t.Helper()
		b.Eval("candid.state()", &s)
		return s
	}
	b.Key("ArrowUp") // to the root
	b.Key("ArrowUp")
	b.Key("ArrowUp")
	b.Key("Enter")
	s := get()
	if s.Zoom != 2 {
		t.Errorf("zoomed to %d, want 2, the heaviest frame of the heaviest frame", s.Zoom)
	}
	if h := b.Text("location.hash"); h != "#zoom=2" {
		t.Errorf("the address holds %q", h)
	}
	if got := b.Text("document.querySelector('.crumbs').innerText"); !strings.Contains(got, "all") || !strings.Contains(got, "of all") {
		t.Errorf("the way to the zoomed frame reads %q", got)
	}
	b.Key("Backspace")
	if s := get(); s.Zoom != 1 {
		t.Errorf("one step out is %d, want 1", s.Zoom)
	}
	b.Key("Escape")
	if s := get(); s.Zoom != 0 {
		t.Errorf("Escape left the zoom at %d", s.Zoom)
	}
	b.Key("i")
	b.Key("t")
	if s := get(); s.Flame || s.Split != "thread" {
		t.Errorf("after i and t the state is %+v", s)
	}
	b.Key("/")
	for _, c := range "get" {
		b.Key(string(c))
	}
	b.Key("Enter")
	if s := get(); s.Query != "get" {
		t.Errorf("the search is %q", s.Query)
	}
	if name := b.Text("document.querySelector('.detail .name').innerText"); !strings.Contains(strings.ToLower(name), "get") {
		t.Errorf("Enter in the search went to %q", name)
	}
	hash := b.Text("location.hash")
	b.open(file, hash)
	if again := get(); again.Flame || again.Split != "thread" || again.Query != "get" {
		t.Errorf("%s brings back %+v", hash, again)
	}
	b.Key("?")
	var open bool
	if b.Eval("document.querySelector('dialog.help').open", &open); !open {
		t.Error("? shows no help")
	}
	b.quiet(file)
}

// TestPagePointer points, clicks and turns the wheel.
func TestPagePointer(t *testing.T) {
	t.Parallel()
	b := openPage(t, 1280, 800)
	b.Dark(false)
	file := writePage(t, profiletest.Server(2000, 8000, 30))
	b.open(file, "#icicle=1")
	var top float64
	b.Eval("document.querySelector('canvas').getBoundingClientRect().top", &top)
	mouse := func(kind string, x, y float64, more map[string]any) {
		t.Helper()
		p := map[string]any{"type": kind, "x": x, "y": y}
		for k, v := range more {
			p[k] = v
		}
		b.Call("Input.dispatchMouseEvent", p, nil)
	}
	frame := func(i int) (name string) {
		t.Helper()
		b.Eval(fmt.Sprintf("candid.frame(%d).name", i), &name)
		return name
	}
	y := top + 21*2 + 10 // the third row
	mouse("mouseMoved", 20, y, nil)
	// The response to the pointer comes when the page has received the event, which is not always
	// when the page has handled it.
	raw, _ := json.Marshal(frame(2))
	b.Until(fmt.Sprintf("document.querySelector('.detail .name').innerText.includes(%s)", raw))
	button := map[string]any{"button": "left", "clickCount": 1}
	mouse("mousePressed", 20, y, button)
	mouse("mouseReleased", 20, y, button)
	b.Until("candid.state().zoom === 2")
	mouse("mousePressed", 20, top+10, button)
	mouse("mouseReleased", 20, top+10, button)
	b.Until("candid.state().zoom === 0")
	for range 40 {
		mouse("mouseWheel", 20, y, map[string]any{"deltaX": 0, "deltaY": -100, "modifiers": 2})
	}
	b.Until("candid.state().zoom !== 0")
	for range 60 {
		mouse("mouseWheel", 20, y, map[string]any{"deltaX": 0, "deltaY": 100, "modifiers": 2})
	}
	b.Until("candid.state().zoom === 0")
	b.quiet(file)
}

// TestPageFirstEvent opens a page whose first event has no samples: it shows the first event that
// has some, and the other one on request.
func TestPageFirstEvent(t *testing.T) {
	p := profiletest.Later(profiletest.Server(500, 2000, 20))
	b := openPage(t, 1280, 800)
	file := writePage(t, p)
	for hash, event := range map[string]int{"": 1, "#event=2": 2, "#event=0": 0, "#split=thread": 1} {
		b.open(file, hash)
		var got struct {
			Event   int
			Samples float64
			Chosen  string
		}
		b.Eval("({event: candid.state().event, samples: candid.sums().samples, chosen: document.querySelector('select[aria-label=Event]').selectedOptions[0].text})", &got)
		if all := p.Select(profile.Filter{Event: event}).All; got.Event != event || got.Samples != float64(all.Samples) || got.Chosen != p.Events[event].Name {
			t.Errorf("%q: the page shows %+v, want %d samples of event %d", hash, got, all.Samples, event)
		}
	}
	b.quiet(file)
}

// TestPagePictures takes screenshots for people into the directory that CANDID_PICTURES names, of
// the page that CANDID_PAGE names or of a made-up one.
func TestPagePictures(t *testing.T) {
	dir := os.Getenv("CANDID_PICTURES")
	if dir == "" {
		t.Skip("set CANDID_PICTURES to a directory to have pictures taken")
	}
	b := openPage(t, 1440, 900)
	file := os.Getenv("CANDID_PAGE")
	if file == "" {
		file = writePage(t, profiletest.Server(20000, 30000, 34))
	}
	for _, dark := range []bool{false, true} {
		theme := map[bool]string{false: "light", true: "dark"}[dark]
		b.Dark(dark)
		shot := func(name, hash, script string, width, height int, scale float64) {
			b.Size(width, height, scale)
			b.open(file, hash)
			b.Eval(script, nil)
			b.Picture(filepath.Join(dir, name+"-"+theme+".png"))
		}
		shot("whole", "", "candid.select(40)", 1440, 900, 1)
		shot("search", "#search=HashMap", "", 1440, 900, 1)
		shot("zoom", "#icicle=1&zoom=60", "candid.select(61)", 1440, 900, 1)
		shot("threads", "#split=thread", "dispatchEvent(new KeyboardEvent('keydown', {key: 'T'}))", 1440, 900, 1)
		shot("narrow", "#zoom=9", "candid.select(12)", 420, 800, 2)
		shot("twice", "", "candid.select(14)", 720, 450, 2)
		shot("help", "", "dispatchEvent(new KeyboardEvent('keydown', {key: '?'}))", 1440, 900, 1)
	}
}

// TestPageKinds shows the threads of a kind with one click.
func TestPageKinds(t *testing.T) {
	t.Parallel()
	p := profiletest.Java()
	b := openPage(t, 1280, 800)
	file := writePage(t, p)
	b.open(file, "")
	for _, kind := range []struct{ label, kind string }{{"Java", "java"}, {"GC", "gc"}, {"JIT", "compiler"}, {"All threads", ""}} {
		want := 0.0
		for _, s := range p.Samples {
			if s.Event == 0 && (kind.kind == "" || p.Threads[s.Thread].Kind == kind.kind) {
				want += float64(s.Weight)
			}
		}
		b.Eval(fmt.Sprintf("[...document.querySelectorAll('[aria-label=\"Kinds of threads\"] button')].find(e => e.textContent === %q).click()", kind.label), nil)
		var got sums
		b.Eval("candid.sums()", &got)
		pressed := b.Text("[...document.querySelectorAll('[aria-label=\"Kinds of threads\"] [aria-pressed=true]')].map(e => e.textContent).join()")
		if got.Total != want || want == 0 || pressed != kind.label {
			t.Errorf("%s: the page has %v, the profile %v; %q is pressed", kind.label, got.Total, want, pressed)
		}
	}
	b.quiet(file)
}
