package record

import (
	"fmt"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/target"
)

// Samples of processes that had ended are counted, those of processes that may not be examined are not.
func TestVanished(t *testing.T) {
	var v vanished
	v.refused(7, fmt.Errorf("open: %w", target.ErrPermission))
	v.refused(8, fmt.Errorf("open: %w", target.ErrNoProcess))
	v.refused(9, fmt.Errorf("open: %w", target.ErrZombie))
	v.refused(10, target.ErrZombie) // no sample is of this one
	v.sample(7)
	if got := v.note(); got != "" {
		t.Errorf("without a sample of one that had ended: %q", got)
	}
	v.sample(8)
	v.sample(8)
	v.sample(9)
	if got := v.note(); !strings.HasPrefix(got, "3 samples of 2 processes have no stacks") {
		t.Error(got)
	}
	v.next()
	v.sample(8)
	if got := v.note(); !strings.HasPrefix(got, "1 samples of 1 processes have no stacks") {
		t.Errorf("of the next part: %q", got)
	}
	for pid := range uint32(3 * maxVanished) {
		v.refused(pid, target.ErrZombie)
	}
	if len(v.pids) > maxVanished {
		t.Errorf("%d are remembered", len(v.pids))
	}
}
