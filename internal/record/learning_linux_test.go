package record

import (
	"testing"
	"time"
)

// Code that a VM runs for the first time must be read while the VM is there, so the
// next batch comes soon after one that had such code.
func TestLearningHurries(t *testing.T) {
	s := session{spaces: newSpaces(), learning: true}
	if d := s.Hurry(); d != learningly || d <= hurriedly {
		t.Errorf("after new code the next batch is wanted in %v", d)
	}
	if s.learning = false; s.Hurry() != 0 {
		t.Errorf("without new code the next batch is wanted in %v", s.Hurry())
	}
	s.spaces.until(time.Now().Add(time.Minute))
	if s.learning = true; s.Hurry() != hurriedly {
		t.Errorf("of a young program the next batch is wanted in %v", s.Hurry())
	}
}
