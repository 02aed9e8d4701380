package store

import (
	"fmt"
	"strconv"
	"strings"
)

// noteSet collects the notes of blocks. Those that differ only in their numbers are one: a day has
// thousands of blocks, each of which may count something.
type noteSet struct {
	list []blockNote
	at   map[string]int // in list, by the text without its numbers
}

type blockNote struct {
	text  string
	first float64 // the text's first number
	more  int     // how many other texts differ from it only in their numbers
	seen  map[string]bool
}

// mostAlike bounds how many texts that differ only in their numbers are told apart.
const mostAlike = 1000

// add adds a block's note. Of those that are alike the one whose first number is the greatest is kept.
func (s *noteSet) add(text string) {
	shape, first := shapeOf(text)
	i, ok := s.at[shape]
	if !ok {
		if len(s.list) == mostNotes/2 {
			return
		}
		if s.at == nil {
			s.at = map[string]int{}
		}
		s.at[shape] = len(s.list)
		s.list = append(s.list, blockNote{text: text, first: first, seen: map[string]bool{text: true}})
		return
	}
	n := &s.list[i]
	if n.seen[text] || len(n.seen) == mostAlike {
		return
	}
	n.seen[text] = true
	n.more++
	if first > n.first {
		n.text, n.first = text, first
	}
}

// texts returns the notes.
func (s *noteSet) texts() (out []string) {
	for i := range s.list {
		n := &s.list[i]
		text := n.text
		switch {
		case n.more == 1:
			text += " (a note like this one is of another part of the time)"
		case len(n.seen) == mostAlike:
			text += fmt.Sprintf(" (%d notes like this one, or more, are of other parts of the time)", n.more)
		case n.more > 0:
			text += fmt.Sprintf(" (%d notes like this one are of other parts of the time)", n.more)
		}
		out = append(out, text)
	}
	return out
}

// shapeOf returns a text without its numbers, and the first of them, 0 if there is none.
func shapeOf(text string) (shape string, first float64) {
	var b strings.Builder
	found := false
	for i := 0; i < len(text); {
		if text[i] < '0' || text[i] > '9' {
			b.WriteByte(text[i])
			i++
			continue
		}
		end := i
		for end < len(text) && (text[end] >= '0' && text[end] <= '9' || (text[end] == '.' || text[end] == ',') && end+1 < len(text) && text[end+1] >= '0' && text[end+1] <= '9') {
			end++
		}
		if !found {
			first, _ = strconv.ParseFloat(strings.ReplaceAll(text[i:end], ",", ""), 64)
			found = true
		}
		b.WriteByte('0')
		i = end
	}
	return b.String(), first
}
