package tui

import "strings"

const helpWords = `SELF is the part of samples with the method innermost, TOTAL of those with it
anywhere on the stack: in the last seconds, and in ALL since the start.

  up down pgup pgdn   move; home and end, or g and G, go to the ends
  enter               show or hide the callers of a method; + has more of them
  right left          the same
  c                   hide all callers
  s t n               sort by self, total or name (threads: CPU, all, name)
  u                   by total: show what only starts threads too, or hide it
  w                   look at the last 10, 60 or 2 seconds
  /                   show only what matches a regular expression
  space               freeze; sampling goes on behind it
  tab                 threads and back; there enter shows one thread's methods
  esc                 back: drop the filter, leave the thread, hide callers
  q, Ctrl-C           quit

The header says how many stacks are complete, guessed, truncated or broken, how
many samples were lost, and what candid itself uses. For a script:
candid top --once --json -p PID

Any key goes back.`

func (s *Screen) helpText() string {
	lines := []string{paint(bold, title)}
	if s.height < 23 { // the meaning of the columns can be left out
		_, keys, _ := strings.Cut(helpWords, "\n\n")
		lines = append(lines, strings.Split(keys, "\n")...)
	} else {
		lines = append(lines, "")
		lines = append(lines, strings.Split(helpWords, "\n")...)
	}
	lines = lines[:min(len(lines), s.height)]
	for i := range lines {
		lines[i] = cut(lines[i], s.width)
	}
	return strings.Join(lines, "\n")
}
