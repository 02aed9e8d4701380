package store

import (
	"fmt"
	"slices"
	"testing"
)

// Notes of many blocks that differ only in their numbers are one note.
func TestNotesThatAreAlike(t *testing.T) {
	var s noteSet
	for i := range 2880 {
		s.add(fmt.Sprintf("%d of 1,127 samples (%.1f %%) were taken elsewhere", 10+i%50, float64(i%50)/11.27))
		s.add("no kernel frames")
	}
	s.add("process 17: its functions cannot be named")
	s.add("process 4,012: its functions cannot be named")
	want := []string{
		"59 of 1,127 samples (4.3 %) were taken elsewhere (49 notes like this one are of other parts of the time)",
		"no kernel frames",
		"process 4,012: its functions cannot be named (a note like this one is of another part of the time)",
	}
	if got := s.texts(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Notes are bounded, however many a hostile store has.
func TestNotesAreBounded(t *testing.T) {
	var s noteSet
	for i := range 3 * mostAlike {
		s.add(fmt.Sprint("x", i))
		s.add(fmt.Sprint(string(rune('a'+i%26)), string(rune('a'+i/26%26)), string(rune('a'+i/676%26))))
	}
	if len(s.list) > mostNotes/2 || len(s.list[0].seen) > mostAlike {
		t.Errorf("%d notes, %d alike", len(s.list), len(s.list[0].seen))
	}
}
