package tui

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/live"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/walk"
)

// program is a made-up target whose samples a test adds one by one.
type program struct {
	*live.Model
	b       *profile.Builder
	elapsed time.Duration
	lost    uint64
}

func newProgram(command string) *program {
	p := &program{Model: live.New(), b: profile.NewBuilder()}
	p.b.AddProcess(profile.Process{PID: 77, Command: command, Runtime: "hotspot 17"})
	p.Begin(record.Begun{Engine: "bpf", Events: []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1e7}}})
	return p
}

// runs adds n samples of 10 ms of a thread in a stack, outermost first.
func (p *program) runs(n int, tid int, thread string, stack ...string) {
	node := uint32(profile.RootNode)
	for i, f := range stack {
		name, module, _ := strings.Cut(f, "@")
		fn := p.b.Func(profile.Func{Name: name, Module: module})
		node = p.b.Node(node, p.b.Frame(profile.Frame{Func: fn, Kind: []walk.Kind{walk.KindC2, walk.KindKernel, walk.KindInterpreted}[i%3]}))
	}
	for range n {
		p.Sample(p.b, profile.Sample{Time: uint64(p.elapsed), Weight: 1e7, Node: node, Thread: p.b.Thread(77, tid, thread), End: walk.EndComplete})
	}
}

func (p *program) passes(d time.Duration) {
	for range int(d / time.Second) {
		p.elapsed += time.Second
		p.Batch(p.b, record.Progress{Elapsed: p.elapsed, OwnCPU: p.elapsed / 50, Stats: capture.Stats{Lost: p.lost}})
	}
}

// server returns a program with known shares: 50 % sort (two callers), 30 % hash, 20 % read in
// another thread.
func server() *program {
	p := newProgram("/opt/jdk/bin/java -jar /srv/app.jar")
	p.runs(10, 1, "main", "App.main", "App.load", "Sort.run")
	p.runs(40, 1, "main", "App.main", "App.serve", "Sort.run")
	p.runs(30, 1, "main", "App.main", "App.serve", "Hash.digest")
	p.runs(20, 2, "reader", "Thread.run", "Reader.loop", "read@/lib/x/libc.so.6")
	p.passes(time.Second)
	return p
}

func show(p *program, w, h int) *Screen {
	s := New(Options{Model: p.Model, State: func(_, tid int) string { return fmt.Sprint("state", tid) }})
	s.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return s
}

// text returns the screen without attributes; it must fit.
func text(t *testing.T, s *Screen) string {
	t.Helper()
	out := ansi.Strip(s.View().Content)
	lines := strings.Split(out, "\n")
	if len(lines) > s.height {
		t.Errorf("%d lines on a screen of %d:\n%s", len(lines), s.height, out)
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > s.width {
			t.Errorf("line %d has %d columns of %d: %q", i, w, s.width, l)
		}
		for _, r := range l {
			if !unicode.IsPrint(r) {
				t.Errorf("line %d: %q is no character to draw: %q", i, r, l)
			}
		}
	}
	return out
}

var special = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "tab": {Code: tea.KeyTab}, "esc": {Code: tea.KeyEscape}, "space": {Code: tea.KeySpace, Text: " "},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
	"pgdown": {Code: tea.KeyPgDown}, "pgup": {Code: tea.KeyPgUp}, "end": {Code: tea.KeyEnd}, "home": {Code: tea.KeyHome},
	"backspace": {Code: tea.KeyBackspace}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
}

// press presses keys, and reports whether they quit.
func press(s *Screen, keys ...string) bool {
	quit := false
	for _, k := range keys {
		msg, ok := special[k]
		if !ok {
			msg = tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		}
		if _, cmd := s.Update(msg); cmd != nil {
			_, quit = cmd().(tea.QuitMsg)
		}
	}
	return quit
}

// has checks that the text has lines with these words, in this order.
func has(t *testing.T, what, text string, words ...string) {
	t.Helper()
	rest := text
	for _, w := range words {
		i := strings.Index(rest, w)
		if i < 0 {
			t.Fatalf("%s: %q is missing, or not in order, in:\n%s", what, w, text)
		}
		rest = rest[i+len(w):]
	}
}

func lacks(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(text, w) {
			t.Errorf("%s: %q is there:\n%s", what, w, text)
		}
	}
}

func TestMethods(t *testing.T) {
	s := show(server(), 120, 24)
	out := text(t, s)
	has(t, "by self", out, "candid top", "java -jar /srv/app.jar", "0:01", "hotspot 17", "pid 77", "bpf", "100 samples/s", "1.00 CPUs", "█",
		"0 broken", "0 lost", "100.0% complete", "candid 2.0% of a CPU", "↓SELF/10s", "TOTAL/10s", "SELF/ALL", "TOTAL/ALL", "METHOD",
		"50.0%", "50.0%", "50.0%", "50.0%", "interpreted", "Sort.run", "30.0%", "Hash.digest", "20.0%", "20.0%", "read  libc.so.6", "0.0%", "80.0%", "App.main",
		"Sort.run  self 500ms, total 500ms since the start", "q quit")
	press(s, "t")
	has(t, "by total", text(t, s), "↓TOTAL/10s", "App.main", "App.serve", "Sort.run", "Hash.digest")
	press(s, "n")
	has(t, "by name", text(t, s), "↓METHOD", "App.load", "App.main", "App.serve", "Hash.digest", "Reader.loop", "Sort.run", "Thread.run", "read")
	if !press(s, "q") || !press(s, "ctrl+c") {
		t.Error("it does not quit")
	}
}

func TestCallers(t *testing.T) {
	s := show(server(), 80, 24)
	press(s, "enter")
	out := text(t, s)
	has(t, "open", out, "Sort.run", "40.0%", "├─+App.serve", "10.0%", "└─+App.load", "Hash.digest")
	press(s, "down", "enter")
	has(t, "open further", text(t, s), "Sort.run", "├─ App.serve", "│    App.main", "└─+App.load", "Hash.digest")
	press(s, "left")
	out = text(t, s)
	has(t, "closed", out, "├─+App.serve", "└─+App.load")
	press(s, "up", "enter")
	lacks(t, "closed", text(t, s), "├─")
	// All callers on a straight line are shown.
	press(s, "down", "right")
	has(t, "straight", text(t, s), "Hash.digest", "└─ App.serve", "App.main", "read")
	press(s, "c")
	lacks(t, "all closed", text(t, s), "└─")
}

func TestFilter(t *testing.T) {
	s := show(server(), 80, 24)
	press(s, "/", "A", "p", "p")
	out := text(t, s)
	has(t, "typing", out, "App.main", "App.serve", "App.load", "filter /App")
	lacks(t, "typing", out, "Hash", "Sort")
	press(s, "[")
	has(t, "half typed", text(t, s), "App.main", "not a regular expression")
	press(s, "enter")
	has(t, "no expression is not taken", text(t, s), "not a regular expression")
	press(s, "backspace", "enter")
	out = text(t, s)
	has(t, "kept", out, "only /App/", "App.main", "q quit")
	press(s, "tab")
	has(t, "threads have their own", text(t, s), "main", "reader")
	press(s, "/", "q", "enter")
	has(t, "threads", text(t, s), "only /q/", "nothing matches /q/")
	press(s, "esc", "tab", "esc")
	has(t, "dropped", text(t, s), "Sort.run", "Hash.digest")
	press(s, "/", "l", "i", "b", "c", "enter")
	has(t, "by module", text(t, s), "read  libc.so.6")
	press(s, "/", "esc")
	has(t, "dropped while typing", text(t, s), "Sort.run")
	if press(s, "/", "q") {
		t.Error("q in a filter quits")
	}
	if !press(s, "ctrl+c") {
		t.Error("Ctrl-C in a filter does not quit")
	}
}

func TestThreads(t *testing.T) {
	s := show(server(), 120, 24)
	press(s, "tab")
	out := text(t, s)
	has(t, "threads", out, "↓CPU/10s", "PART/ALL", "TID", "STATE", "LOAD", "THREAD", "HOTTEST METHOD",
		"80.0%", "80.0%", "1", "state1", "▆", "main", "62.5%", "Sort.run", "20.0%", "20.0%", "2", "state2", "▂", "reader", "100.0%", "read",
		"main (thread 1 of process 77): 800ms since the start", "tab methods")
	press(s, "down", "enter")
	out = text(t, s)
	has(t, "one thread", out, "only thread reader (2)", "100.0%", "100.0%", "read", "Reader.loop", "Thread.run")
	lacks(t, "one thread", out, "Sort.run", "ALL")
	press(s, "esc")
	has(t, "back", text(t, s), "THREAD", "main", "reader")
	press(s, "tab")
	has(t, "methods again", text(t, s), "Sort.run", "read")
	press(s, "tab", "n")
	has(t, "by name", text(t, s), "↓THREAD", "main", "reader")
}

// A frozen screen stays, with all that can be asked of it, while sampling goes on.
func TestFreeze(t *testing.T) {
	p := server()
	s := show(p, 80, 24)
	press(s, "space")
	p.runs(300, 3, "late", "Late.run")
	p.passes(2 * time.Second)
	s.Update(tick{})
	out := text(t, s)
	has(t, "frozen", out, "FROZEN at 0:01", "50.0%", "Sort.run", "space go on")
	lacks(t, "frozen", out, "Late")
	press(s, "enter")
	has(t, "callers of what is frozen", text(t, s), "40.0%", "├─+App.serve")
	press(s, "tab")
	lacks(t, "threads of what is frozen", text(t, s), "late")
	press(s, "tab", "w")
	has(t, "another window of what is frozen", text(t, s), "SELF/60s", "50.0%", "Sort.run")
	press(s, "space")
	out = text(t, s)
	has(t, "going on", out, "0:03", "75.0%", "Late.run", "12.5%", "Sort.run")
	lacks(t, "going on", out, "FROZEN")
}

func TestWindow(t *testing.T) {
	p := server()
	p.passes(14 * time.Second)
	s := show(p, 80, 24)
	has(t, "10 s", text(t, s), "SELF/10s", "0.0%", "0.0%", "50.0%", "Sort.run")
	press(s, "w")
	has(t, "60 s", text(t, s), "SELF/60s", "50.0%", "50.0%", "50.0%", "Sort.run")
	press(s, "w", "w")
	has(t, "10 s again", text(t, s), "SELF/10s")
}

// The chosen line stays the same method while the order changes; until a key is pressed it is the
// first line.
func TestChosenStays(t *testing.T) {
	p := server()
	s := show(p, 80, 24)
	p.runs(100, 1, "main", "Hash.digest")
	s.Update(tick{})
	if got := s.lines[s.at].path[0].Name; got != "Hash.digest" {
		t.Errorf("untouched, %s is chosen", got)
	}
	press(s, "down")
	p.runs(1000, 1, "main", "Sort.run")
	p.runs(500, 1, "main", "Other.run")
	s.Update(tick{})
	if got := s.lines[s.at].path[0].Name; got != "Sort.run" || s.at != 0 {
		t.Errorf("%s at %d is chosen", got, s.at)
	}
	press(s, "end")
	last := s.lines[s.at].key
	s.Update(tea.WindowSizeMsg{Width: 80, Height: 8})
	if s.lines[s.at].key != last || s.at != len(s.lines)-1 || s.at-s.top >= s.room() {
		t.Errorf("line %d of %d, from %d on %d are seen", s.at, len(s.lines), s.top, s.room())
	}
	press(s, "pgup", "pgup", "pgup", "pgup", "pgup")
	if s.at != 0 || s.top != 0 {
		t.Errorf("at %d, from %d", s.at, s.top)
	}
}

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		msg  Ended
		want []string
	}{
		{Ended{}, []string{"TARGET ENDED at 0:01", "q quits", "Sort.run"}},
		{Ended{Over: true}, []string{"DONE at 0:01", "Sort.run"}},
		{Ended{Err: errors.New("the ring\x1b[2J is gone")}, []string{"STOPPED at 0:01", "the ring?[2J is gone", "Sort.run"}},
	} {
		s := show(server(), 80, 24)
		s.Update(c.msg)
		if _, cmd := s.Update(tick{}); cmd != nil {
			t.Error("it goes on asking")
		}
		has(t, "ended", text(t, s), c.want...)
		press(s, "enter", "tab")
		text(t, s)
		if !press(s, "q") {
			t.Error("it does not quit")
		}
	}
}

// The header reports what is incomplete.
func TestHonest(t *testing.T) {
	p := server()
	node := p.b.Node(profile.RootNode, 0)
	for _, sm := range []profile.Sample{{End: walk.EndTruncated}, {End: walk.EndNoRule}, {End: walk.EndNoRule}, {Flags: profile.Guessed}} {
		sm.Time, sm.Weight, sm.Node = uint64(p.elapsed), 1e7, node
		p.Sample(p.b, sm)
	}
	p.lost = 26
	p.b.Meta().Notes = []string{"process 77: its Java methods cannot be named: \x07why", "other"}
	p.passes(time.Second)
	out := text(t, show(p, 120, 24))
	has(t, "header", out, "1.9% broken", "1.0% truncated", "20.0% lost", "96.2% complete", "1.0% guessed", "note (1 more): process 77", "?why")
	p.passes(30 * time.Second)
	has(t, "later", text(t, show(p, 120, 24)), "0 broken", "26 lost since the start")
}

// Whatever names and sizes there are, the screen holds what fits and nothing else reaches the
// terminal.
func TestHostile(t *testing.T) {
	p := newProgram("\x1b]0;owned\x07 " + strings.Repeat("宽", 300) + "\n\n")
	evil := []string{
		"\x1b[2J\x1b[31mred", "line\nbreak\r\t", strings.Repeat("名前", 200), strings.Repeat("x", 100_000), "", "e\u0301\u0301\u0301\u0301", "\u202eright to left\u2066",
		"👩‍👩‍👧‍👦.family", "\xff\xfe\x80", "\u200b\u200d\ufeff", "a@" + strings.Repeat("模块/", 100), "b@\x1b[0m", "[]()*+?", "\u0085\u009b31m",
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i, e := range evil {
		p.runs(1+i, 100+i, e, evil[r.IntN(len(evil))], evil[r.IntN(len(evil))], e)
	}
	p.b.Meta().Notes = []string{evil[0] + evil[2]}
	p.passes(3 * time.Second)
	keys := []string{"enter", "tab", "esc", "space", "down", "up", "end", "pgup", "s", "t", "n", "w", "/", "名", "(", "backspace", "?", "left", "right", "c", "x"}
	for round := range 40 {
		s := show(p, 80, 24)
		for range 60 {
			if r.IntN(4) == 0 {
				s.Update(tea.WindowSizeMsg{Width: r.IntN(230), Height: r.IntN(60)})
			} else if press(s, keys[r.IntN(len(keys))]) {
				t.Fatal("it quits")
			}
			if s.Update(tick{}); s.width > 0 && s.height > 0 {
				text(t, s)
			}
			if t.Failed() {
				t.Fatalf("round %d", round)
			}
		}
	}
}

// The explanation of the keys fits the usual size.
func TestHelpFits(t *testing.T) {
	s := show(server(), 80, 24)
	press(s, "?")
	out := text(t, s)
	has(t, "help", out, "SELF", "enter", "space", "tab", "q, Ctrl-C", "--once --json", "Any key goes back.")
	lacks(t, "help", out, "…")
	press(s, "x")
	has(t, "back", text(t, s), "Sort.run")
}

func TestNothingYet(t *testing.T) {
	s := show(newProgram("sleep 100"), 80, 24)
	has(t, "idle", text(t, s), "sleep 100"[:0], "no samples yet")
	press(s, "enter", "down", "tab", "enter", "esc", "left", "end")
	text(t, s)
}

func TestWholeMachine(t *testing.T) {
	p := server()
	s := New(Options{Model: p.Model, Whole: true})
	out := text(t, s)
	has(t, "header", out, "the whole machine: 1 process so far", "0:01")
	lacks(t, "header", out, "pid 77", "app.jar")
}

func TestOnce(t *testing.T) {
	var out strings.Builder
	table := server().Table(live.Query{Window: live.MaxWindow, Threads: true})
	if err := Once(&out, table, Style{Width: 80, Rows: 3}); err != nil {
		t.Fatal(err)
	}
	has(t, "table", out.String(), "java -jar /srv/app.jar\n", "  hotspot 17 · pid 77 · engine bpf · 100 samples in 1.0s · 1.00 CPUs\n", "0 broken · 0 lost · 100.0% complete\n",
		"SELF   TOTAL  KIND           METHOD\n", "  50.0%   50.0%  interpreted    Sort.run\n", "  30.0%   30.0%  interpreted    Hash.digest\n",
		"  20.0%   20.0%  interpreted    read  libc.so.6\n", "and 5 more; --json has all\n",
		"  80.0%        1  main                        62.5%  Sort.run\n", "  20.0%        2  reader                     100.0%  read  libc.so.6\n")
	lacks(t, "table", out.String(), "\x1b")
}

// Shares of few samples are marked, and the number of samples is shown.
func TestFewSamples(t *testing.T) {
	for samples, marked := range map[int]bool{29: true, 1: true, 99: true, 100: false} {
		p := newProgram("x")
		p.runs(samples, 1, "main", "App.main", "Sort.run")
		p.passes(time.Second)
		var out strings.Builder
		table := p.Table(live.Query{Window: live.MaxWindow, Threads: true})
		if err := Once(&out, table, Style{Width: 100, Rows: 3}); err != nil {
			t.Fatal(err)
		}
		screen := text(t, show(p, 160, 30))
		note := fmt.Sprintf("~: shares of only %d sample", samples)
		for what, text := range map[string]string{"once": out.String(), "screen": screen} {
			if strings.Contains(text, note) != marked || strings.Contains(text, "~100.0%") != marked {
				t.Errorf("%s, %d samples: marked should be %v:\n%s", what, samples, marked, text)
			}
		}
		if samples == 29 && !strings.Contains(out.String(), "10% may be 3% to 26%") {
			t.Error(out.String())
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	p := newProgram("x")
	for i := range 3000 {
		p.runs(1+i%7, i%20, "thread", "main", fmt.Sprint("caller", i%50), fmt.Sprint("some.package.Class.method", i))
		if i%50 == 0 {
			p.passes(time.Second)
		}
	}
	s := show(p, 200, 50)
	b.ReportAllocs()
	for b.Loop() {
		s.Update(tick{})
		s.View()
	}
}

// Sampled by wall-clock time, threads have the states of their samples, and time is counted of
// threads, not of CPUs.
func TestWall(t *testing.T) {
	p := newProgram("java Waits")
	p.Begin(record.Begun{Engine: "bpf", Events: []profile.Event{{Name: "wall", Kind: profile.EventWall, Unit: "nanoseconds", Period: 1e7}}})
	node := p.b.Node(profile.RootNode, p.b.Frame(profile.Frame{Func: p.b.Func(profile.Func{Name: "Waits.run"}), Kind: walk.KindC2}))
	for i := range 200 {
		state, tid := profile.StateParked, 1
		if i%4 == 0 {
			state, tid = profile.StateRunning, 2
		}
		p.Sample(p.b, profile.Sample{Time: uint64(i) * 5e6, Weight: 1e7, Node: node, Thread: p.b.Thread(77, tid, fmt.Sprint("worker ", tid)), State: state})
	}
	p.passes(time.Second)
	s := show(p, 120, 20)
	has(t, "header", text(t, s), "2.00 threads (wall)", "0 broken", "75.0% parked", "25.0% running", "100.0% complete", "waits: parked 1.50s in Waits.run", "note: a sleep is counted when it is over")
	press(s, "tab")
	has(t, "threads", text(t, s), "↓TIME/10s", "150.0%", "parked", "worker 1", "parked in Waits.run", "50.0%", "running", "worker 2")
	var out strings.Builder
	table := p.Table(live.Query{Window: live.MaxWindow, Threads: true})
	if err := Once(&out, table, Style{Rows: 5}); err != nil {
		t.Fatal(err)
	}
	has(t, "once", out.String(), "2.00 threads (wall)", "75.0% parked · 25.0% running", "longest waits: parked 1.50s in Waits.run", "TIME", "100.0%  parked in Waits.run")
	r := table.Report("v")
	if r.States["parked"] != 0.75 || r.Threads[0].State != "parked" || r.Threads[0].CPU != nil {
		t.Errorf("%+v", r)
	}
}

// Sorted by total, methods that only start threads do not push everything else off the screen; a
// key, or a filter that matches them, shows them.
func TestStartsOfThreads(t *testing.T) {
	p := server()
	node := uint32(profile.RootNode)
	for _, f := range []string{"clone3@/lib/libc.so.6", "start_thread@/lib/libc.so.6", "Thread::call_run@/jdk/lib/libjvm.so", "busy@/lib/libc.so.6"} {
		name, module, _ := strings.Cut(f, "@")
		fn := p.b.Func(profile.Func{Name: name, Module: module})
		node = p.b.Node(node, p.b.Frame(profile.Frame{Func: fn, Kind: walk.KindNative}))
	}
	for range 100 {
		p.Sample(p.b, profile.Sample{Time: uint64(p.elapsed), Weight: 1e7, Node: node, Thread: p.b.Thread(77, 3, "worker"), End: walk.EndComplete})
	}
	p.passes(time.Second)
	s := show(p, 100, 30)
	has(t, "by self", text(t, s), "busy", "clone3")
	press(s, "t")
	out := text(t, s)
	has(t, "by total", out, "(u: and 3 that start threads)", "busy", "App.main")
	if strings.Contains(out, "clone3") || strings.Contains(out, "call_run") {
		t.Errorf("the frames by which threads start are there:\n%s", out)
	}
	press(s, "u")
	if out = text(t, s); strings.Contains(out, "(u:") {
		t.Errorf("none is left out now:\n%s", out)
	}
	has(t, "unfolded", out, "busy", "App.main")
	for _, name := range []string{"clone3", "start_thread", "Thread::call_run"} {
		has(t, "unfolded", out, name)
	}
	press(s, "u", "/", "c", "l", "o", "n", "e", "enter")
	has(t, "asked for", text(t, s), "clone3")
}
