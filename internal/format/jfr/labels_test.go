package jfr_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
)

// As many labels as a sample may have are read as they were written.
func TestLongLabels(t *testing.T) {
	b := profile.NewBuilder()
	b.Profile().Events = []profile.Event{profile.NamedEvent("cpu", "nanoseconds", 1)}
	var labels []profile.Label
	for i := range 20 {
		labels = append(labels, profile.TextLabel(fmt.Sprint("key", i), strings.Repeat("x", profile.MaxLabelText)))
	}
	call, _ := b.Labeled("read", labels)
	b.Add(profile.Sample{Weight: 1, Thread: b.Thread(1, 1, "main"), Syscall: call})
	p := b.Finish()
	got := read(t, written(t, p))
	if l := got.LabelsOf(&got.Samples[0]); len(l) != 3 || !reflect.DeepEqual(l, p.LabelsOf(&p.Samples[0])) {
		t.Errorf("%d labels are read, %d were there", len(l), len(p.LabelsOf(&p.Samples[0])))
	}
}
