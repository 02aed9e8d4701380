// Package tui draws `candid top` in a terminal and handles its keys.
package tui

import (
	"regexp"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/candid-profiler/candid/internal/live"
)

// Options select what to show.
type Options struct {
	Model *live.Model
	// Whole means that the target is the whole machine.
	Whole bool
	// Every is how often the table is refreshed; 0 is the default, half a second.
	Every time.Duration
	// State returns what a thread does now, in a word; nil if that cannot be known.
	State func(pid, tid int) string
}

// Ended is the message that sampling has ended.
type Ended struct {
	Err  error // what ended it; nil: it ended normally
	Over bool  // the requested time is over; otherwise the targets have ended
}

// windows are cycled through with a key.
var windows = []time.Duration{10 * time.Second, 60 * time.Second, 2 * time.Second}

type page int

const (
	methodsPage page = iota
	threadsPage
)

type order int

const (
	byFirst  order = iota // self, or CPU in the window
	bySecond              // total, or since the start
	byName
)

// Screen is the state of what is shown.
type Screen struct {
	o             Options
	width, height int

	source *live.Model // what is queried: the model, or a copy while frozen
	frozen bool
	ended  *Ended
	table  *live.Table

	page   page
	help   bool
	order  [2]order // by page
	window int      // index into windows
	thread *live.ThreadID
	named  string // of thread
	open   map[live.Method]*live.Open
	unfold bool // frames by which threads start are shown too, sorted by total
	folded int  // how many are hidden

	filters [2]*regexp.Regexp // by page
	editing bool
	typed   string
	wrong   string // why typed is no valid expression

	lines []line
	// The chosen line is the one with this key, or at this index if there is none. Until a key is
	// pressed it is the first.
	key   string
	at    int
	moved bool
	top   int // first visible line
}

// New returns a screen that has not been drawn.
func New(o Options) *Screen {
	if o.Every <= 0 {
		o.Every = 500 * time.Millisecond
	}
	s := &Screen{o: o, source: o.Model, width: 80, height: 24, open: make(map[live.Method]*live.Open)}
	s.refresh()
	return s
}

// Program returns a program that shows the screen; the caller runs it, stops it with Quit, and
// sends Ended.
func (s *Screen) Program() *tea.Program {
	// The caller handles signals. Drawing more often than this shows nothing more.
	return tea.NewProgram(s, tea.WithoutSignalHandler(), tea.WithFPS(20))
}

type tick struct{}

func (s *Screen) next() tea.Cmd {
	return tea.Tick(s.o.Every, func(time.Time) tea.Msg { return tick{} })
}

// Init implements tea.Model.
func (s *Screen) Init() tea.Cmd { return s.next() }

// Update implements tea.Model.
func (s *Screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tick:
		if s.ended != nil {
			return s, nil
		}
		if !s.frozen {
			s.refresh()
		}
		return s, s.next()
	case Ended:
		s.ended = &msg
		if !s.frozen {
			s.refresh()
		}
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
		s.follow()
	case tea.PasteMsg:
		if s.editing {
			s.edit(s.typed + msg.Content)
		}
	case tea.KeyPressMsg:
		return s, s.press(msg)
	}
	return s, nil
}

// refresh queries the model again.
func (s *Screen) refresh() {
	s.table = s.source.Table(live.Query{
		Window: windows[s.window], Thread: s.thread, Threads: s.page == threadsPage, Open: s.open,
	})
	s.layout()
}

// filter returns the filter of the page.
func (s *Screen) filter() *regexp.Regexp { return s.filters[s.page] }

// layout makes the lines from the table.
func (s *Screen) layout() {
	if s.page == threadsPage {
		s.lines = s.threadLines()
	} else {
		s.lines = s.methodLines()
	}
	s.follow()
}

// follow finds the chosen line again and scrolls it into view.
func (s *Screen) follow() {
	if !s.moved {
		s.at = 0
	} else {
		for i := range s.lines {
			if s.lines[i].key == s.key {
				s.at = i
				break
			}
		}
	}
	s.choose(s.at)
}

// choose makes line i the chosen one.
func (s *Screen) choose(i int) {
	s.at = max(min(i, len(s.lines)-1), 0)
	s.key = ""
	if s.at < len(s.lines) {
		s.key = s.lines[s.at].key
	}
	room := max(s.room(), 1)
	s.top = max(min(s.top, s.at), s.at-room+1)
	s.top = max(min(s.top, len(s.lines)-room), 0)
}

// chosen returns the chosen line, nil if there is none.
func (s *Screen) chosen() *line {
	if s.at < len(s.lines) {
		return &s.lines[s.at]
	}
	return nil
}
