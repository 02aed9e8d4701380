package record

import (
	"slices"
	"testing"
)

// Messages that come while a launched program has the terminal are printed afterwards, in order.
func TestLinesWait(t *testing.T) {
	var said []string
	l := &lines{log: func(line string) { said = append(said, line) }}
	l.say("a")
	l.hold()
	l.say("b")
	l.say("c")
	if !slices.Equal(said, []string{"a"}) {
		t.Errorf("said meanwhile: %q", said)
	}
	l.release()
	l.say("d")
	if !slices.Equal(said, []string{"a", "b", "c", "d"}) {
		t.Errorf("said: %q", said)
	}
}
