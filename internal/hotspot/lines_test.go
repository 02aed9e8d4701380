package hotspot

import "testing"

func TestLines(t *testing.T) {
	// bci +0 line +3; bci +2 line +1; an escape to bci 1, line 100 (not in order).
	data := []byte{3, 2<<3 | 1, 0xFF, 1, 192, 0, 0}
	lines, ok := decodeLines(data, 0, 50)
	if !ok || len(lines) != 3 {
		t.Fatalf("%v, %v", lines, ok)
	}
	for bci, want := range map[int32]int32{-1: 3, 0: 3, 1: 100, 2: 4, 40: 4} {
		if got := lineAt(lines, bci); got != want {
			t.Errorf("line of bci %d is %d, want %d", bci, got, want)
		}
	}
	if _, ok := decodeLines([]byte{9, 9}, 0, 50); ok {
		t.Error("a table without an end was taken")
	}
}
