package tui

import (
	"regexp"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/candid-profiler/candid/internal/live"
)

// press handles a key.
func (s *Screen) press(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch name {
	case "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	}
	switch {
	case s.editing:
		s.typing(k)
		return nil
	case s.help:
		s.help = false
		if name == "q" {
			return tea.Quit
		}
		return nil
	}
	if do, known := moves[name]; known {
		s.moved = true
		s.choose(do(s))
		return nil
	}
	if do, known := actions[name]; known {
		return do(s)
	}
	return nil
}

var moves = map[string]func(*Screen) int{
	"up":     func(s *Screen) int { return s.at - 1 },
	"k":      func(s *Screen) int { return s.at - 1 },
	"down":   func(s *Screen) int { return s.at + 1 },
	"j":      func(s *Screen) int { return s.at + 1 },
	"pgup":   func(s *Screen) int { return s.at - s.room() },
	"ctrl+b": func(s *Screen) int { return s.at - s.room() },
	"pgdown": func(s *Screen) int { return s.at + s.room() },
	"ctrl+f": func(s *Screen) int { return s.at + s.room() },
	"home":   func(*Screen) int { return 0 },
	"g":      func(*Screen) int { return 0 },
	"end":    func(s *Screen) int { return len(s.lines) - 1 },
	"G":      func(s *Screen) int { return len(s.lines) - 1 },
}

var actions = map[string]func(*Screen) tea.Cmd{
	"q": func(*Screen) tea.Cmd { return tea.Quit },
	"?": func(s *Screen) tea.Cmd { s.help = true; return nil },
	"h": func(s *Screen) tea.Cmd { s.help = true; return nil },
	"s": func(s *Screen) tea.Cmd { return s.sort(byFirst) },
	"t": func(s *Screen) tea.Cmd { return s.sort(bySecond) },
	"n": func(s *Screen) tea.Cmd { return s.sort(byName) },
	"u": func(s *Screen) tea.Cmd {
		s.unfold = !s.unfold
		s.layout()
		return nil
	},
	"w": func(s *Screen) tea.Cmd {
		s.window = (s.window + 1) % len(windows)
		s.refresh()
		return nil
	},
	"space": func(s *Screen) tea.Cmd { s.freeze(); return nil },
	"tab":   func(s *Screen) tea.Cmd { s.show(1 - s.page); return nil },
	"/": func(s *Screen) tea.Cmd {
		s.editing, s.typed, s.wrong = true, "", ""
		if s.filter() != nil {
			s.typed = s.filter().String()
		}
		return nil
	},
	"enter": func(s *Screen) tea.Cmd { s.enter(); return nil },
	"right": func(s *Screen) tea.Cmd { s.expand(true); return nil },
	"left":  func(s *Screen) tea.Cmd { s.expand(false); return nil },
	"l":     func(s *Screen) tea.Cmd { s.expand(true); return nil },
	"c": func(s *Screen) tea.Cmd {
		clear(s.open)
		s.refresh()
		return nil
	},
	"esc": func(s *Screen) tea.Cmd { s.back(); return nil },
}

func (s *Screen) sort(by order) tea.Cmd {
	s.order[s.page], s.moved, s.top = by, false, 0
	s.layout()
	return nil
}

// freeze freezes the display, or lets it go on.
func (s *Screen) freeze() {
	s.frozen = !s.frozen
	if s.frozen {
		s.source = s.o.Model.Clone()
	} else {
		s.source = s.o.Model
	}
	s.refresh()
}

func (s *Screen) show(p page) {
	s.page, s.moved, s.top = p, false, 0
	s.refresh()
}

// back undoes what restricts the view, the latest first.
func (s *Screen) back() {
	switch {
	case s.filter() != nil:
		s.filters[s.page] = nil
		s.layout()
	case s.page == methodsPage && s.thread != nil:
		s.thread, s.named = nil, ""
		s.show(threadsPage)
	case len(s.open) > 0:
		clear(s.open)
		s.refresh()
	}
}

// enter opens the chosen row: a method's callers or a thread's methods.
func (s *Screen) enter() {
	l := s.chosen()
	if l == nil {
		return
	}
	if l.thread != nil {
		id := l.thread.ThreadID
		s.thread, s.named = &id, l.thread.Name
		s.show(methodsPage)
		return
	}
	s.expand(!l.opened)
}

// expand shows the callers of the chosen line, or hides them.
func (s *Screen) expand(show bool) {
	l := s.chosen()
	if l == nil || l.thread != nil {
		return
	}
	s.moved = true
	if show {
		at, known := s.open[l.path[0]]
		if !known || at == nil {
			at = &live.Open{}
			s.open[l.path[0]] = at
		}
		for _, m := range l.path[1:] {
			if at.Below == nil {
				at.Below = make(map[live.Method]*live.Open)
			}
			if at.Below[m] == nil {
				at.Below[m] = &live.Open{}
			}
			at = at.Below[m]
		}
	} else {
		s.close(l.path)
	}
	s.refresh()
}

// close hides the callers of the innermost method on the path that was opened.
func (s *Screen) close(path []live.Method) {
	at := s.open[path[0]]
	parent, last := (*live.Open)(nil), path[0]
	for _, m := range path[1:] {
		if at == nil || at.Below[m] == nil {
			break
		}
		parent, last, at = at, m, at.Below[m]
	}
	if parent == nil {
		delete(s.open, path[0])
		s.key = methodKey(path[:1])
		return
	}
	delete(parent.Below, last)
}

// typing handles a key while a filter is typed.
func (s *Screen) typing(k tea.KeyPressMsg) {
	switch k.String() {
	case "enter":
		if s.wrong == "" {
			s.editing = false
		}
	case "esc":
		s.editing, s.wrong = false, ""
		s.filters[s.page] = nil
		s.layout()
	case "backspace":
		if r := []rune(s.typed); len(r) > 0 {
			s.edit(string(r[:len(r)-1]))
		}
	case "ctrl+u":
		s.edit("")
	default:
		s.edit(s.typed + k.Text)
	}
}

// edit makes a filter from what was typed. While that is no valid expression the previous one
// stays.
func (s *Screen) edit(typed string) {
	const most = 200
	clean := []rune{}
	for _, r := range typed {
		if unicode.IsPrint(r) && len(clean) < most {
			clean = append(clean, r)
		}
	}
	s.typed, s.wrong = string(clean), ""
	if s.typed == "" {
		s.filters[s.page] = nil
	} else if re, err := regexp.Compile(s.typed); err != nil {
		s.wrong = "not a regular expression"
	} else {
		s.filters[s.page] = re
	}
	s.moved, s.top = false, 0
	s.layout()
}
