package symbol

import (
	"testing"
	"time"
)

// A recording that goes on for long may read more, so that an agent has lines of what is installed later.
func TestBudgetGrows(t *testing.T) {
	b := NewBudget(time.Second, nil)
	b.spent.Store(int64(2 * time.Second))
	if b.wantsLines() {
		t.Error("lines are read though reading took twice what it may")
	}
	b.began = b.began.Add(-10 * time.Minute)
	if !b.wantsLines() {
		t.Errorf("no lines are read ten minutes later, when reading may have taken %v", b.limit())
	}
}
